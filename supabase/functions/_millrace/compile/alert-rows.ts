import type { PipelineOptions } from '../define/definition-schema.ts';

type Alerts = NonNullable<PipelineOptions['alerts']>;

/**
 * Returns the rules of a pipeline as rows of millrace.alert_rules. A field left out has the default of the rule's kind.
 */
export function alertRows(pipeline: string, alerts: Alerts): object[] {
  return Object.entries(alerts).map(([name, rule]) => ({
    name,
    kind: rule.kind,
    pipeline,
    stage: rule.stage,
    above: rule.above,
    span: seconds(rule.spanSeconds ?? (rule.kind === 'dead' || rule.kind === 'spend' ? 3600 : 600)),
    hold: seconds(rule.forSeconds ?? 0),
    recover: seconds(rule.recoverSeconds ?? 300),
    least: rule.least ?? 1,
    channels: rule.channels,
    playbook: rule.playbook,
    enabled: rule.enabled ?? true,
    source: 'definition',
  }));
}

const seconds = (count: number) => `${count} s`;
