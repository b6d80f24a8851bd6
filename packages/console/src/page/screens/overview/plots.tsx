import type { HistoryData } from '../../api/use-history.ts'
import { perSecond, sumOf, total } from '../../api/use-history.ts'
import { secondsSpan } from '../../components/plot.tsx'
import type { HistoryPlot, Line } from '../../components/plot.tsx'
import { bytes, count, rate } from '../../components/values.tsx'

/** The most error codes in the plot; the others are one line. */
const MAX_CODES = 4

/** The plots of the node as a whole. */
export function plotsOfNode(history: HistoryData): readonly HistoryPlot[] {
  const { messages, queues, errors } = history
  const rates = (label: string, values: readonly (number | null)[]): Line => ({
    label,
    values: perSecond(values, history),
  })
  return [
    {
      title: 'Messages',
      lines: [
        rates('in', sumOf(messages.map(({ messages_in }) => messages_in))),
        rates('out', sumOf(messages.map(({ messages_out }) => messages_out))),
      ],
      format: rate,
    },
    {
      title: 'Queues',
      lines: [
        { label: 'waiting', values: queues.waiting },
        { label: 'in flight', values: queues.in_flight },
        { label: 'delayed', values: queues.delayed },
      ],
      format: count,
      grid: 'whole',
    },
    { title: 'Failed calls', lines: errorLines(errors, history), format: rate },
    {
      title: 'Moved and repeated',
      lines: [
        rates('dead-lettered', queues.dead_lettered),
        rates('redelivered', queues.redelivered),
        rates('expired', queues.expired),
      ],
      format: rate,
    },
    {
      title: 'Event-loop delay',
      lines: [{ label: 'longest', values: history.event_loop_delay_seconds }],
      format: secondsSpan,
    },
    {
      title: 'Memory and store',
      lines: [
        { label: 'process', values: history.memory_bytes },
        { label: 'JavaScript', values: history.heap_bytes },
        { label: 'store', values: history.store_bytes },
      ],
      format: bytes,
      grid: 'binary',
    },
  ]
}

function errorLines(errors: HistoryData['errors'], history: HistoryData): readonly Line[] {
  const sorted = Object.entries(errors).toSorted(([, a], [, b]) => total(b) - total(a))
  const lines = sorted.slice(0, MAX_CODES).map(([label, values]) => ({ label, values: perSecond(values, history) }))
  const others = sorted.slice(MAX_CODES).map(([, values]) => values)
  if (lines.length === 0) return [{ label: 'none', values: Array.from({ length: history.steps }, () => 0) }]
  return others.length === 0 ? lines : [...lines, { label: 'others', values: perSecond(sumOf(others), history) }]
}
