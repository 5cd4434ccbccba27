// The entry of @millrace/test. Its types are written by hand in test.d.ts: a project's compiler reads those alone.
export { callFinish, callHandler } from './call-handler.ts';
export { openPipeline } from './open-pipeline.ts';
export { startModel } from './scripted-model.ts';
export { refuses } from './scripted-server.ts';
export { startService } from './scripted-service.ts';
