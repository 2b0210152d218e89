"""The jars with which Spark reads tables of lakes, brought by Maven into a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from fcntl import LOCK_EX, flock
from pathlib import Path

_JARS = (
    ("io.delta", "delta-spark_2.12", "3.3.2"),
    ("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", "1.10.0"),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
)
"""For Spark 3.5; sqlite-jdbc opens the catalog of Iceberg that pyiceberg writes."""
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions>
<exclusion><groupId>org.scala-lang</groupId><artifactId>*</artifactId></exclusion>
<exclusion><groupId>org.apache.spark</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
"""
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>rayflink</groupId><artifactId>lakes-for-tests</artifactId><version>1</version>
<dependencies>{"".join(_DEPENDENCY.format(*jar) for jar in _JARS)}</dependencies></project>
"""


def lake_jars() -> list[Path]:
    """Return the jars, which the first call on a machine downloads; none where that cannot be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rayflink"
    folder = cache / f"lakes-for-spark-{'-'.join(version for _, _, version in _JARS)}"
    if not folder.exists() and shutil.which("mvn") is not None:
        cache.mkdir(parents=True, exist_ok=True)
        with open(cache / "lakes.lock", "w") as lock, tempfile.TemporaryDirectory(dir=cache) as work:
            flock(lock, LOCK_EX)
            Path(work, "pom.xml").write_text(_POM)
            copy = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
            maven = subprocess.run(["mvn", "-q", "-B", *copy], cwd=work, capture_output=True, timeout=300, check=False)
            if not maven.returncode and not folder.exists():
                os.rename(Path(work, "lib"), folder)
    return sorted(folder.glob("*.jar")) if folder.exists() else []


def lake_configs() -> dict[str, str]:
    """Return the configuration of a Spark that reads Delta and Iceberg; {} where the jars are missing."""
    jars = lake_jars()
    if not jars:
        return {}
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
    }
