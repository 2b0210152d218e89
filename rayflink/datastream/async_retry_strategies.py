"""Strategies that set how often and after which pause async calls are tried again, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.functions.async_retries import (
    NO_RETRY_STRATEGY,
    ExponentialBackoffDelayRetryStrategy,
    FixedDelayRetryStrategy,
    NoRetryStrategy,
    RetryPredicate,
)

__all__ = [
    "NO_RETRY_STRATEGY", "ExponentialBackoffDelayRetryStrategy", "FixedDelayRetryStrategy", "NoRetryStrategy",
    "RetryPredicate",
]  # fmt: skip
