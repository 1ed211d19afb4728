from jaxenc.processes.agreement import Agreement
from jaxenc.sharding import mesh as meshes


def test_a_process_that_is_alone_is_answered_at_once() -> None:
    vote = Agreement(meshes.make(meshes.MeshConfig()))
    assert [vote.agreed(asked) for asked in (False, True, False)] == [False, True, False]
