import { useMemo } from 'preact/hooks'

import type { HistoryData, HistoryRange } from '../../api/use-history.ts'
import { perSecond, spanOf, sumOf, timesOf, total } from '../../api/use-history.ts'
import { bytes, count, rate, span } from '../../components/values.tsx'
import type { Line } from '../../components/plot.tsx'
import { Plot } from '../../components/plot.tsx'

/** The most error codes in the plot; the others are one line. */
const MAX_CODES = 4

interface PlotsProps {
  readonly history: HistoryData
  readonly range: HistoryRange
}

export function Plots({ history, range }: PlotsProps) {
  const spanMs = spanOf(range, history)
  const times = useMemo(() => timesOf(history), [history])
  const lines = useMemo(() => linesOf(history), [history])
  return (
    <div class="grid">
      <Plot title="Messages" times={times} spanMs={spanMs} lines={lines.messages} format={rate} />
      <Plot title="Queues" times={times} spanMs={spanMs} lines={lines.queues} format={count} grid="whole" />
      <Plot title="Failed calls" times={times} spanMs={spanMs} lines={lines.errors} format={rate} />
      <Plot title="Moved and repeated" times={times} spanMs={spanMs} lines={lines.repairs} format={rate} />
      <Plot
        title="Event-loop delay"
        times={times}
        spanMs={spanMs}
        lines={lines.loop}
        format={(seconds) => span(seconds * 1_000)}
      />
      <Plot title="Memory and store" times={times} spanMs={spanMs} lines={lines.sizes} format={bytes} grid="binary" />
    </div>
  )
}

function linesOf(history: HistoryData) {
  const { messages, queues, errors } = history
  return {
    messages: [
      { label: 'in', values: perSecond(sumOf(messages.map(({ messages_in }) => messages_in)), history) },
      { label: 'out', values: perSecond(sumOf(messages.map(({ messages_out }) => messages_out)), history) },
    ],
    queues: [
      { label: 'waiting', values: queues.waiting },
      { label: 'in flight', values: queues.in_flight },
      { label: 'delayed', values: queues.delayed },
    ],
    errors: errorLines(errors, history),
    repairs: [
      { label: 'dead-lettered', values: perSecond(queues.dead_lettered, history) },
      { label: 'redelivered', values: perSecond(queues.redelivered, history) },
      { label: 'expired', values: perSecond(queues.expired, history) },
    ],
    loop: [{ label: 'longest', values: history.event_loop_delay_seconds }],
    sizes: [
      { label: 'process', values: history.memory_bytes },
      { label: 'JavaScript', values: history.heap_bytes },
      { label: 'store', values: history.store_bytes },
    ],
  }
}

function errorLines(errors: HistoryData['errors'], history: HistoryData): readonly Line[] {
  const sorted = Object.entries(errors).toSorted(([, a], [, b]) => total(b) - total(a))
  const lines = sorted.slice(0, MAX_CODES).map(([label, values]) => ({ label, values: perSecond(values, history) }))
  const others = sorted.slice(MAX_CODES).map(([, values]) => values)
  if (lines.length === 0) return [{ label: 'none', values: Array.from({ length: history.steps }, () => 0) }]
  return others.length === 0 ? lines : [...lines, { label: 'others', values: perSecond(sumOf(others), history) }]
}
