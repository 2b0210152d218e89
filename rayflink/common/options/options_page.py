"""The page of the documentation with all options."""

from __future__ import annotations

from .registry import sections

_HEAD = """# Configuration

An option may be set in four places. Where several set it, the later one in this list wins, as in Flink:

1. **a file**: the one that `rayflink run --config` names, else `$RAYFLINK_CONF`, else `rayflink.yaml` or `config.yaml`
   in the folder `$RAYFLINK_CONF_DIR`. One file is read.
2. **the environment**: `$RAYFLINK_OPTIONS` holds `key=value` words as a shell reads them.
3. **the command line** of `rayflink run`: `-D key=value`, `-p N` (`parallelism.default`), `--local`
   (`execution.target`), `--detached` (`execution.attached`).
4. **the program**: what it gives to `get_execution_environment()`, or sets later. Where what it gives there is not what
   the command line asks for, it is warned of that.

```sh
export RAYFLINK_OPTIONS="pipeline.name=counts 'execution.buffer-timeout.interval=10 ms'"
rayflink run --config job.yaml -D parallelism.default=4 job.py
```

File and environment count for `StreamExecutionEnvironment.get_execution_environment()` also where a program runs
without `rayflink run`. An environment made by its constructor has the options it is given alone.

A file is YAML, with keys nested as in Flink's `config.yaml` or written as one dotted key:

```yaml
parallelism.default: 2
execution:
  buffer-timeout.interval: 10 ms   # for low latency
io.tmp.dirs: [/mnt/disk1, /mnt/disk2]
```

`Configuration.from_file("job.yaml")` reads such a file in a program or a test. `rayflink config` shows all options,
`rayflink config NAME` one, and `rayflink config --set` those that are set from outside, with the place where each is.

Durations are written `10 ms`, `1 min` or `PT10S`, a bare number is milliseconds; memory sizes `512 bytes`, `32 kb`;
lists `a;b`, or lists of YAML on one line or several; maps `k1:v1,k2:v2`. A value that is none of its type is an
error, which names the place where it is set and
the value that may be meant. A key that no option bears is an error on the command line and elsewhere a warning, with
its place and the nearest key. An option marked **Not heeded yet** is accepted, so that files of Flink can be kept;
where it asks for what this version does not do, submitting the job gives a warning. This page is printed by
`python -m rayflink.common.options.registry`."""


def markdown() -> str:
    """Return the registry as the page docs/configuration.md."""
    lines = [_HEAD]
    for section, options in sections().items():
        lines += ["", f"## {section}", "", "| option | type | default | meaning |", "|---|---|---|---|"]
        for option in options:
            others = "".join(f" Also read: `{key}`." for key in option.fallback_keys)
            default = "refused" if option.refused else option.default_text()
            mark = f" **Not heeded yet**: this version {option.unheeded}." if option.unheeded else ""
            lines.append(f"| `{option.key}` | {option.type.name} | {default} | {option.help}{others}{mark} |")
    return "\n".join(lines) + "\n"
