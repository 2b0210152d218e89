"""The optimizer: phases of rules that rewrite logical plans, and the estimates that some of them use.

`phases` orders the rules, `optimizer` applies them, `user_rules` checks those of users. `estimates`, `selectivity`
and `costs` guess rows, from which `join_order` chooses the order of joins; `conditions` and `join_keys` take conditions
apart; `share_scans` lets the plans of a statement set read a table once. A bound plan enters, and a plan with the same
rows leaves. Each rule is a file in `rules`. Operators are chosen in `rayflink.table.physical`.
"""
