import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { RequestFigures } from '../processes.ts'
import { openLoad, startEcho, startServer } from '../processes.ts'
import type { Guard } from '../guarded.ts'
import type { BenchContext, Goal, Measure } from '../row.ts'

/** Compares the CPU of one `tools/call` with that of a Fastify echo of the same JSON. */
export async function againstEcho(
  context: BenchContext,
  options: {
    readonly name: string
    readonly goal: Goal
    readonly json: string
    /** Settings of the servers; the echo has none. @default no authentication, no authorization, no request log */
    readonly guard?: Guard
    /** Run once on the server before it is measured. */
    readonly prepare?: (url: string, headers: Guard['headers']) => Promise<void>
  },
): Promise<readonly Measure[]> {
  await using stack = new AsyncDisposableStack()
  const echo = await startEcho(context)
  stack.use(echo.process)
  const echoLoad = await openLoad(context, echo.process, echo.url, options.json)
  stack.defer(() => echoLoad.close())
  const alternatives: Alternative<RequestFigures>[] = [{ label: 'Fastify echo', run: echoLoad.run }]
  for (const subject of context.subjects) {
    const server = stack.use(await startServer(context, subject, { env: options.guard?.env ?? {} }))
    const url = `${server.http}/mcp`
    const headers = options.guard?.headers ?? {}
    await options.prepare?.(url, headers)
    const load = await openLoad(context, server.process, url, options.json, headers)
    stack.defer(() => load.close())
    alternatives.push({ label: subject.label, run: load.run })
  }
  const [yardstick = [], ...measured] = await interleave(context.rounds, alternatives)
  return context.subjects.map((subject, i) => {
    const rounds = measured[i] ?? []
    return {
      name: options.name,
      subject: subject.label,
      goal: options.goal,
      samples: ratios(yardstick, rounds, (figures) => figures['CPU µs/request']),
      details: { ...medians('signalbox', rounds), ...medians('Fastify echo', yardstick) },
    }
  })
}
