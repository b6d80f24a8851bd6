/** A command that takes about a given time. */
export interface StressPart {
  readonly name: string
  /** Its share of the time, in parts of all the shares. */
  readonly share: number
  /** Returns the arguments of `npm run` for a duration in seconds. */
  readonly command: (seconds: number) => readonly string[]
}

/** The duration of one kill of `npm run crash` with its start and load, in seconds. */
const CRASH_ROUND_SECONDS = 3

/** Every long run. A part with its own duration, such as the attacks, may take less or more than its share. */
export const PARTS: readonly StressPart[] = [
  { name: 'files', share: 3, command: () => ['test:stress:files'] },
  { name: 'fuzz', share: 2, command: (seconds) => ['fuzz', '--', '--minutes', String(seconds / 60)] },
  {
    name: 'crash',
    share: 3,
    command: (seconds) => {
      const rounds = String(Math.max(1, Math.round(seconds / 2 / CRASH_ROUND_SECONDS)))
      return ['crash', '--', '--rounds', rounds, '--core-rounds', rounds]
    },
  },
  {
    name: 'durable-agents',
    share: 2,
    command: (seconds) => {
      const rounds = String(Math.max(1, Math.round(seconds / 2 / CRASH_ROUND_SECONDS)))
      return ['crash', '--', '--agent-rounds', rounds]
    },
  },
  {
    name: 'schedules',
    share: 1,
    command: (seconds) => {
      const rounds = String(Math.max(1, Math.round(seconds / 2 / CRASH_ROUND_SECONDS)))
      return ['crash', '--', '--schedule-rounds', rounds]
    },
  },
  { name: 'chaos', share: 3, command: (seconds) => ['cluster', '--', 'chaos', '--minutes', String(seconds / 60)] },
  // Delays are judged manually on a quiet machine, so the budget is wide here.
  {
    name: 'messages',
    share: 2,
    command: (seconds) => ['soak', '--', 'messages', '--seconds', String(Math.ceil(seconds)), '--budget', '1000'],
  },
  {
    name: 'key-rotation',
    share: 1,
    command: (seconds) => ['soak', '--', 'key-rotation', '--seconds', String(Math.ceil(seconds / 2))],
  },
  {
    name: 'certificate-rotation',
    share: 1,
    command: (seconds) => ['soak', '--', 'certificate-rotation', '--seconds', String(Math.ceil(seconds))],
  },
  {
    name: 'agent-streams',
    share: 1,
    command: (seconds) => {
      const sizes = ['--streams', '500', '--mebibytes', String(Math.ceil(seconds / 2)), '--rate', '1']
      return ['soak', '--', 'agent-streams', ...sizes]
    },
  },
  {
    name: 'webhooks',
    share: 1,
    command: (seconds) => {
      const round = String(Math.ceil(seconds / 4))
      return ['soak', '--', 'webhooks', '--subscriptions', '2000', '--rounds', '1', '--seconds', round]
    },
  },
  {
    name: 'groups',
    share: 2,
    command: (seconds) => {
      const messages = Math.ceil(seconds * 3_000)
      return ['soak', '--', 'groups', '--messages', String(messages), '--groups', String(Math.ceil(messages / 10))]
    },
  },
  { name: 'idle-connections', share: 2, command: () => ['soak', '--', 'idle-connections', '--connections', '3000'] },
  { name: 'attack', share: 3, command: () => ['attack', '--', '--quick'] },
]

/** Returns the seconds of each part. */
export function secondsOf(parts: readonly StressPart[], minutes: number): ReadonlyMap<StressPart, number> {
  const shares = parts.reduce((sum, { share }) => sum + share, 0)
  return new Map(parts.map((part) => [part, (minutes * 60 * part.share) / shares]))
}
