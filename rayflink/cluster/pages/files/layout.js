// Places the vertices of a graph in layers from left to right: each as near to what reads it as it can be.
// Source: Sugiyama, Tagawa and Toda (1981); places in a layer are an isotonic regression.

const SWEEPS = 8;

function layersOf(count, edges) {
  const distance = new Array(count).fill(0);
  for (let round = 0; round < count; round += 1) {
    let changed = false;
    for (const [from, to] of edges) {
      if (distance[from] < distance[to] + 1) {
        distance[from] = distance[to] + 1;
        changed = true;
      }
    }
    if (!changed) break;
  }
  const deepest = Math.max(...distance, 0);
  return distance.map((steps) => deepest - steps);
}

function mean(values, otherwise) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : otherwise;
}

/** Return the places nearest to those wanted at which boxes are `apart` from their neighbours. */
function spread(wanted, apart) {
  const blocks = [];
  wanted.forEach((place, index) => {
    let block = { mean: place - index * apart, count: 1 };
    while (blocks.length && blocks[blocks.length - 1].mean >= block.mean) {
      const other = blocks.pop(), count = other.count + block.count;
      block = { mean: (other.mean * other.count + block.mean * block.count) / count, count };
    }
    blocks.push(block);
  });
  return blocks.flatMap((block) => new Array(block.count).fill(block.mean)).map((place, index) => place + index * apart);
}

/** Return {places: [{x, y}], paths: [[{x, y}]], width, height}; `edges` are pairs of indexes. */
export function layered(count, edges, box, gap) {
  const layerOf = layersOf(count, edges), layers = [];
  layerOf.forEach((layer, node) => (layers[layer] ||= []).push(node));
  const before = Array.from({ length: count }, () => []), after = Array.from({ length: count }, () => []);
  let next = count;
  const chains = edges.map(([from, to]) => {
    const chain = [from];
    for (let layer = layerOf[from] + 1; layer < layerOf[to]; layer += 1) {
      layers[layer].push(next);
      before[next] = [];
      after[next] = [];
      chain.push(next++);
    }
    chain.push(to);
    for (let index = 1; index < chain.length; index += 1) {
      before[chain[index]].push(chain[index - 1]);
      after[chain[index - 1]].push(chain[index]);
    }
    return chain;
  });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const neighbours = sweep % 2 ? after : before, rank = [];
    layers.forEach((layer) => layer.forEach((node, index) => { rank[node] = index; }));
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const means = new Map(layer.map((node) => [node, mean(neighbours[node].map((other) => rank[other]), rank[node])]));
      layer.sort((left, right) => means.get(left) - means.get(right));
      layer.forEach((node, index) => { rank[node] = index; });
    }
  }
  const apart = box.height + gap.y, y = [];
  for (const layer of layers) layer.forEach((node, index) => { y[node] = index * apart; });
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const neighbours = sweep % 2 ? after : before;
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wanted = layer.map((node) => mean(neighbours[node].map((other) => y[other]), y[node]));
      spread(wanted, apart).forEach((place, index) => { y[layer[index]] = place; });
    }
  }
  const top = Math.min(...y), step = box.width + gap.x;
  const places = layerOf.map((layer, node) => ({ x: layer * step, y: y[node] - top }));
  const paths = chains.map((chain) => chain.flatMap((node, index) => {
    const layer = layerOf[chain[0]] + index, middle = y[node] - top + box.height / 2, left = layer * step;
    if (index === 0) return [{ x: left + box.width, y: middle }];
    if (index === chain.length - 1) return [{ x: left, y: middle }];
    return [{ x: left, y: middle }, { x: left + box.width, y: middle }];
  }));
  return { places, paths, width: layers.length * step - gap.x, height: Math.max(...y) - top + box.height };
}
