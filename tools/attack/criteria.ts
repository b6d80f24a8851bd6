import type { AttackReport } from './attack-report.ts'

/** The limit of memory that the server reads from its control group, as in a container. */
export const CONTAINER_BYTES = 2 ** 30

/** The largest resident memory. A container of {@link CONTAINER_BYTES} also holds its kernel memory. */
const MOST_RSS_BYTES = 900 * 2 ** 20

/** The CPU time of one tick that the requests of many connections may take together, in milliseconds. */
const MOST_TURN_MS = 100

/** The factor by which an attack may slow the other caller. */
const MOST_SLOWER = 2

/** The scheduler delays a process by some milliseconds: a shorter p99 counts as this. */
const LEAST_P99_MS = 10

/** Returns the p99 that the other caller may have during an attack, in milliseconds. */
export function mostP99({ alone }: Pick<AttackReport, 'alone'>): number {
  return MOST_SLOWER * Math.max(alone.p99Ms, LEAST_P99_MS)
}

/** Returns the times that are too long. Other processes of the machine may have caused them. */
export function lateTimes(
  { alone, honest, watched }: Pick<AttackReport, 'alone' | 'honest' | 'watched'>,
  mostTurnMs = MOST_TURN_MS,
): string[] {
  const late: string[] = []
  const most = mostP99({ alone })
  if (watched.turnMs > mostTurnMs) {
    late.push(`a tick of the event loop took ${watched.turnMs.toFixed(0)} ms of CPU, and ${mostTurnMs} are allowed`)
  }
  if (honest.p99Ms > most) {
    late.push(`the other caller's p99 was ${honest.p99Ms.toFixed(0)} ms, and ${most.toFixed(0)} are allowed`)
  }
  return late
}

/** Returns the reason why the server used too much memory. */
export function memoryProblem(peakRssBytes: number): string | undefined {
  if (peakRssBytes <= MOST_RSS_BYTES) return undefined
  const [peak, most] = [peakRssBytes, MOST_RSS_BYTES].map((bytes) => Math.round(bytes / 2 ** 20))
  return `the server used ${peak} MB, and ${most} are allowed`
}
