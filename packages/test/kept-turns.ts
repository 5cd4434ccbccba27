import type { AgentLimits, NewTurn, Turn } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { Checkpoints } from '../../supabase/functions/_millrace/stage/agent-checkpoints.ts';

/** Returns a conversation kept in memory. `turns` may be read, and shared with the checkpoints of a later attempt. */
export function keepCheckpoints(
  options: {
    turns?: Turn[];
    limits?: Partial<AgentLimits>;
    attempt?: number;
    elapsedMs?: number;
    /** Called before a turn is kept; what it throws ends the attempt, as a crash would. */
    before?: (turn: NewTurn) => void;
  } = {},
): Checkpoints & { turns: Turn[] } {
  const { turns = [], limits = {}, attempt = 11, elapsedMs = 0, before = () => {} } = options;
  return {
    turns,
    load: async () => structuredClone({ turns, limits: { max_turns: 50, ...limits }, elapsedMs }),
    append: async (turn) => {
      before(turn);
      turns.push(structuredClone({ ...turn, attempt }));
    },
  };
}
