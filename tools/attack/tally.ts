import type { Answer } from './caller.ts'
import { failureOf, outcomeOf } from './caller.ts'

/** Counts the attacker's answers, by status and code, and collects the failed expectations. */
export class Tally {
  readonly #counts = new Map<string, number>()
  readonly problems: string[] = []

  count(outcome: string, times = 1): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + times)
  }

  /** Awaits an answer and counts it or its failure; resolves with it. */
  async of(answer: Promise<Answer>): Promise<Answer | undefined> {
    try {
      const got = await answer
      this.count(outcomeOf(got))
      return got
    } catch (error) {
      this.count(failureOf(error))
      return undefined
    }
  }

  /** Records a problem if the condition is false. */
  expect(holds: boolean, otherwise: string): void {
    if (!holds) this.problems.push(otherwise)
  }

  /** Returns the number of outcomes that begin with the text. */
  countOf(beginning: string): number {
    let sum = 0
    for (const [outcome, times] of this.#counts) if (outcome.startsWith(beginning)) sum += times
    return sum
  }

  /** `200 ×3, 429 -32603 ×17`, the most frequent first. */
  toString(): string {
    const ordered = [...this.#counts].toSorted(([, a], [, b]) => b - a)
    return ordered.map(([outcome, times]) => `${outcome} ×${times.toLocaleString('en')}`).join(', ')
  }
}

/** Calls `work` for 0 to `count` - 1, `width` at a time. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index)
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker))
}

/** Calls `work` repeatedly, `width` at a time, until the time is over. */
export async function during(
  milliseconds: number,
  width: number,
  work: (index: number, worker: number) => Promise<unknown>,
): Promise<void> {
  const end = performance.now() + milliseconds
  let next = 0
  const run = async (worker: number): Promise<void> => {
    while (performance.now() < end) await work(next++, worker)
  }
  await Promise.all(Array.from({ length: width }, (_, worker) => run(worker)))
}
