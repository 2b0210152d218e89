"""Values of state as versioned bytes, and state that is read by a program whose classes have changed since.

`serializers` writes and reads values and says whether stored bytes fit a declaration. `evolution` reads objects whose
class has other fields now. `state_summary` describes a state to readers without the job. Names of classes and
pickling are in `rayflink.state.classes`.
"""
