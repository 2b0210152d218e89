"""The optimizer: phases of rules that rewrite logical plans, and the estimates that some of them use.

`phases` orders the rules, `optimizer` applies them, `user_rules` checks those of users. `estimates`, `selectivity`
and `costs` guess rows; `conditions` and `join_keys` take conditions apart. A bound plan enters, and a plan with the
same rows leaves. Each rule is a file in `rules`. Operators are chosen in `rayflink.table.physical`.
"""
