// The examples as somebody's own code: written by `millrace init --example`, and run there.
import { projectOptions } from '../../../local/platform/dev.ts';
import { ProjectStack } from './project-stack.ts';

/** The project in `root` on a stack with the services that the examples ask. */
export class CopiedExamples extends ProjectStack {
  static async start(root: string, siteUrl: string): Promise<CopiedExamples> {
    const env = { SCRAPER_ALLOW_HOSTS: new URL(siteUrl).host, USE_NEW_PIPELINE: 'true' };
    return new CopiedExamples(await ProjectStack.launch({ ...projectOptions(root), env }));
  }
}
