/** The cost of a piece of in-process work. CPU is that of all threads of the process. */
export interface Work {
  readonly operations: number
  readonly wallMs: number
  readonly cpuMicros: number
}

/** Runs `parallel` loops of `step` until `durationMs` has passed or a step returns 0 done. */
export async function measure(
  parallel: number,
  durationMs: number,
  step: (member: number) => Promise<number>,
): Promise<Work> {
  const used = process.cpuUsage()
  const begin = performance.now()
  let operations = 0
  const loop = async (_: unknown, member: number) => {
    while (performance.now() - begin < durationMs) {
      const done = await step(member)
      if (done === 0) return
      operations += done
    }
  }
  await Promise.all(Array.from({ length: parallel }, loop))
  const { user, system } = process.cpuUsage(used)
  return { operations, wallMs: performance.now() - begin, cpuMicros: user + system }
}

export type WorkFigures = { readonly 'CPU µs/message': number; readonly 'messages/s': number }

export function figures({ operations, wallMs, cpuMicros }: Work): WorkFigures {
  return { 'CPU µs/message': cpuMicros / operations, 'messages/s': operations / (wallMs / 1000) }
}
