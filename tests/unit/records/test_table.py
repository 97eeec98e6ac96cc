from episodica.records.table import joint_of, labels, results_tables


def shown(*runs) -> list[list[str]]:
    """The cells of all lines, heading first, of all tables."""
    lines = []
    for table in results_tables(runs):
        columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
        lines += [list(line) for line in zip(*columns, strict=True)]
    return lines


def test_a_method_that_occurs_once_needs_no_more_than_its_name(make_config):
    configs = [make_config({"method.name": name}) for name in ("ft", "erd", "joint")]
    assert list(labels(configs).values()) == ["ft", "erd", "joint"]


def test_runs_of_a_method_are_told_apart_by_what_differs(make_config):
    configs = [make_config({"method.name": "ft"}), *(make_config({"method.lambda_e": v}, seed=2) for v in (0.0, 1.0))]
    assert list(labels(configs).values()) == ["ft", "erd lambda_e=0.0", "erd lambda_e=1.0"]


def test_fields_of_the_same_name_are_told_apart(make_config):
    configs = [make_config({"stream.seed": s}, seed=t) for s, t in ((0, 1), (1, 0))]
    assert labels(configs)[configs[0].run_id] == "erd stream.seed=0 seed=1"


def test_the_bound_is_joint_training_on_the_same_stream(make_run):
    run, bound = make_run("erd"), make_run("joint", **{"train.episodes_per_step": 2})
    others = [make_run("joint", **change) for change in ({"stream.seed": 1}, {"shape.shots": 2}, {"seed": 1})]
    weaker = make_run("joint")
    assert joint_of(run, [run, *others]) is None
    assert joint_of(run, [run, weaker, *others, bound]) is bound


def test_the_bound_is_trained_for_as_many_steps(make_run):
    run, longer = make_run("erd"), make_run("joint", **{"train.epochs": 400})
    assert joint_of(run, [run, longer]) is None


def test_the_table_shows_sessions_average_and_gap(make_run):
    rows = shown(make_run("ft", 0.5), make_run("erd", 0.6), make_run("joint", 0.7))
    head, *body = rows
    assert head[1:] == ["1", "2", "3", "avg", "gap to joint"]
    cells = {row[0]: row[1:] for row in body[:4]}
    assert cells["ft"] == ["50.0±0.0", "50.1±0.0", "50.2±0.0", "50.1", "19.8"]
    assert cells["erd"][-1] == "9.8"
    assert cells["joint"] == ["", "", "70.0±0.0", "", ""]


def test_forgetting_begins_with_the_second_session(make_run):
    last = shown(make_run("ft", 0.5))[-1]
    assert last[:4] == ["ft", "", "-0.1", "-0.1"]


def test_long_streams_show_powers_of_two_and_the_last_session(make_run):
    head = shown(make_run("ft", **{"stream.tasks": 10}))[0]
    assert head[1:-2] == ["1", "2", "4", "8", "10"]


def test_joint_training_alone_is_shown(make_run):
    assert any("70.0±0.0" in row for row in shown(make_run("joint", 0.7)))
