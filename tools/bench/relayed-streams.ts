import { postBytes } from '../harness/keep-alive-connection.ts'
import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { NativeCall } from './registered-agent.ts'
import type { BenchContext } from './row.ts'
import { SseReaders } from './sse-readers.ts'
import type { Emission } from './workers/agent.ts'

export const STREAMS = 50
export const PER_SECOND = 100

/**
 * Streams from an agent through the measured process; each run sends events on all of them and waits until all have
 * arrived.
 */
export async function relayed(
  context: BenchContext,
  between: MeasuredProcess,
  agent: MeasuredProcess,
  url: string,
  { json, headers }: NativeCall,
) {
  const request = postBytes(url, json, headers)
  const readers = await SseReaders.open({ url, count: STREAMS, request, mark: 'data: {' })
  const emission: Emission = {
    events: Math.ceil((context.roundMs / 1000) * PER_SECOND),
    perSecond: PER_SECOND,
    bytes: 512,
  }
  const events = emission.events * STREAMS
  const run = async () => {
    const all = readers.receive(events)
    const before = await between.cpuMicros()
    await agent.call('emit', emission)
    await all
    return { 'CPU µs/event': ((await between.cpuMicros()) - before) / events }
  }
  await run()
  return { readers, run }
}
