//! What the gate and the walls cost beside the same shell without them, and what the gate costs a memory tool.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::{collections::BTreeMap, ffi::OsString, hint::black_box, sync::Arc};

use animaworks_core::{
    AnimaName, CallId, DataDir, Locale, SystemClock, Tool, ToolCall, ToolContext, ToolName,
    gate::Gate,
    process::{OutputLimits, Spec},
    seams::Sandbox,
    test_support::{FakeTool, context},
    tool::Effect,
    trigger::TriggerKind,
};
use animaworks_tools::{
    KernelSandbox, OwnerPermissions,
    permission::NoDescendants,
    shell::{Surroundings, Walls, bash_tool, judge},
};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn call(name: &str, args: Value) -> ToolCall {
    ToolCall { id: CallId::new("c1").unwrap(), name: ToolName::new(name).unwrap(), args }
}

fn shell(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let dir = DataDir::new(&root).anima(&AnimaName::new("sakura").unwrap());
    fs_err::create_dir_all(dir.root()).unwrap();
    let sandbox: Arc<dyn Sandbox> = Arc::new(KernelSandbox::new(env!("CARGO_BIN_EXE_animaworks-confine")));
    let held = sandbox.strength();
    let permissions = Arc::new(OwnerPermissions::new(dir.clone(), None, Arc::new(NoDescendants), held));
    let surroundings = Surroundings {
        permissions: permissions.clone(),
        sandbox,
        env: BTreeMap::from([(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))]),
        allow_unenforced: false,
        clock: Arc::new(SystemClock::new()),
    };
    let tools: [Arc<dyn Tool>; 2] =
        [bash_tool(surroundings, Locale::En), Arc::new(FakeTool::new("search_memory", Effect::Reads))];
    let gate = Gate::new(tools, permissions.clone());
    let cx: ToolContext = context(TriggerKind::Task);

    let mut group = criterion.benchmark_group("shell");
    group.bench_function("bash alone", |bencher| {
        bencher.iter(|| {
            let spec = Spec::new("/bin/bash", dir.root()).args(["--noprofile", "--norc", "-c", "/bin/true"]);
            let spec = spec.env("PATH", "/usr/bin:/bin");
            runtime.block_on(spec.output(OutputLimits::default(), &CancellationToken::new())).unwrap()
        });
    });
    group.bench_function("through gate, judge and walls", |bencher| {
        bencher.iter(|| {
            let output = runtime.block_on(gate.call(call("Bash", json!({ "command": "/bin/true" })), &cx)).unwrap();
            assert!(!output.is_error, "{}", output.text);
        });
    });
    group.bench_function("judge a pipeline", |bencher| {
        let files = permissions.files();
        let walls = Walls::new(&files, held);
        bencher.iter(|| judge(black_box("git -C work log --oneline | grep fix | head -3"), &walls).is_ok());
    });
    group.bench_function("gate alone", |bencher| {
        bencher.iter(|| runtime.block_on(gate.call(call("search_memory", json!({ "query": "x" })), &cx)).unwrap());
    });
    group.finish();
}

criterion_group!(benches, shell);
criterion_main!(benches);
