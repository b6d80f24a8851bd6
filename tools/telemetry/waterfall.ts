import type { ExportedSpan } from '@signalbox/testkit/otlp-receiver'

const ROW = 22
const NAMES = 400
const BARS = 760
const MARGIN = 16
const HEAD = 64
const COLORS = ['#2f6fb5', '#2e8b57', '#b5562f', '#7a4fb5', '#8a7a1f', '#b52f6f'] as const

interface Row {
  readonly span: ExportedSpan
  readonly depth: number
}

/** Returns an SVG with a row for each span of a trace: parents above their children, time from left to right. */
export function drawTrace(spans: readonly ExportedSpan[]): string {
  const rows = inOrder(spans)
  const start = Math.min(...spans.map((span) => span.start))
  const duration = Math.max(...spans.map((span) => span.end)) - start
  const services = [...new Set(spans.map(({ service }) => service))].toSorted()
  const colorOf = (service: string): string => COLORS[services.indexOf(service) % COLORS.length] ?? COLORS[0]
  const x = (time: number): number => MARGIN + NAMES + ((time - start) / duration) * BARS
  const width = NAMES + BARS + 2 * MARGIN + 90
  const height = HEAD + rows.length * ROW + MARGIN
  const roots = rows.filter(({ depth }) => depth === 0).length
  const legend = services.map((service, i) => {
    const left = MARGIN + i * 130
    return `<rect x="${left}" y="36" width="12" height="12" fill="${colorOf(service)}"/>${label(left + 18, 46, service)}`
  })
  const lines = rows.map(({ span, depth }, i) => {
    const y = HEAD + i * ROW
    const left = x(span.start)
    const long = Math.max(2, x(span.end) - left)
    const links = span.links.length === 0 ? '' : `, ${span.links.length} link${span.links.length === 1 ? '' : 's'}`
    return [
      i % 2 === 0 ? `<rect x="0" y="${y}" width="${width}" height="${ROW}" fill="#f4f5f7"/>` : '',
      label(MARGIN + depth * 16, y + 15, `${span.name}  (${span.kind}${links})`),
      `<rect x="${left.toFixed(1)}" y="${y + 5}" width="${long.toFixed(1)}" height="12" rx="2" fill="${colorOf(span.service)}"/>`,
      label(left + long + 6, y + 15, `${(span.end - span.start).toFixed(2)} ms`),
    ].join('')
  })
  const title = `trace ${spans[0]?.traceId}: ${spans.length} spans, ${roots} root${roots === 1 ? '' : 's'}, ${duration.toFixed(1)} ms`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    label(MARGIN, 22, title),
    ...legend,
    ...lines,
    '</svg>\n',
  ].join('\n')
}

/** Returns the spans from the root down, children by their start. A span whose parent is missing is a root too. */
function inOrder(spans: readonly ExportedSpan[]): readonly Row[] {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const below = (parent: string | undefined, depth: number): Row[] =>
    spans
      .filter(({ parentSpanId = '' }) => (parent === undefined ? !ids.has(parentSpanId) : parentSpanId === parent))
      .toSorted((a, b) => a.start - b.start)
      .flatMap((span) => [{ span, depth }].concat(below(span.spanId, depth + 1)))
  return below(undefined, 0)
}

function label(x: number, y: number, text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x.toFixed(1)}" y="${y}" fill="#20242a" xml:space="preserve">${escaped}</text>`
}
