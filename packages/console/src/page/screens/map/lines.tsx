import { count, span } from '../../components/values.tsx'
import { grouped } from './layout.ts'
import type { Layout, MapEdge, PlacedEdge } from './layout.ts'
import { pace } from './values.tsx'

interface LinesProps {
  readonly layout: Layout
  readonly seconds: number
  readonly marked: string | undefined
  readonly width: number
}

/** The labels at one side of a node: more would not fit. */
const MAX_LABELS = 3
/** Narrower gaps between columns have no place for labels. */
const LABEL_PX = 150

/** The edges. Readers who do not see them have the table. */
export function Lines({ layout, seconds, marked, width }: LinesProps) {
  const { columnWidth, edges, height, tall } = layout
  const labeled = (width - 3 * columnWidth) / 2 < LABEL_PX ? NO_LABELS : labelsOf(edges, marked, tall)
  return (
    <svg width={width} height={height} aria-hidden="true">
      {edges.map((one) => (
        <Line
          key={`${one.edge.from} ${one.edge.to}`}
          placed={one}
          seconds={seconds}
          near={one.edge.from === marked || one.edge.to === marked}
          arrow={tall}
        />
      ))}
      {Array.from(labeled, ([{ edge, from, to }, side]) => (
        <Label
          key={`${edge.from} ${edge.to}`}
          text={labelOf(edge, seconds)}
          bad={edge.errors > 0}
          side={side}
          x={side === 'from' ? from.x + 8 : to.x - 12}
          y={side === 'from' ? from.y : to.y}
        />
      ))}
    </svg>
  )
}

type Side = 'from' | 'to'

const NO_LABELS: ReadonlyMap<PlacedEdge, Side> = new Map()

/** Returns the edges with a label, and the end where it is: of a marked node at its neighbors, otherwise where fewer edges end. */
function labelsOf(
  edges: readonly PlacedEdge[],
  marked: string | undefined,
  tall: boolean,
): ReadonlyMap<PlacedEdge, Side> {
  if (marked !== undefined) {
    const near = edges.filter(({ edge }) => edge.from === marked || edge.to === marked)
    return new Map(near.map((one) => [one, one.edge.from === marked ? 'to' : 'from']))
  }
  if (!tall) return NO_LABELS
  const leaving = grouped(edges, ({ edge }) => edge.from)
  const arriving = grouped(edges, ({ edge }) => edge.to)
  const labels = new Map<PlacedEdge, Side>()
  const used = new Map<string, number>()
  for (const one of edges) {
    const { from, to } = one.edge
    const side = (leaving.get(from)?.length ?? 0) <= (arriving.get(to)?.length ?? 0) ? 'from' : 'to'
    const place = `${side} ${one.edge[side]}`
    const others = used.get(place) ?? 0
    used.set(place, others + 1)
    if (others < MAX_LABELS) labels.set(one, side)
  }
  return labels
}

function labelOf({ messages, errors, latency_seconds: latency }: MapEdge, seconds: number): string {
  const parts = [pace(messages, seconds)]
  if (latency !== null) parts.push(span(latency * 1_000))
  if (errors > 0) parts.push(`✕ ${count(errors)}`)
  return parts.join(' · ')
}

/** The beginning of the ids of nodes that stand for others. */
const MORE = 'more/'

/** The width of a character of a label, in px, and a little more. */
const CHARACTER_PX = 6.2

interface LabelProps {
  readonly text: string
  readonly bad: boolean
  readonly side: Side
  readonly x: number
  readonly y: number
}

/** The text of an edge, on a ground that hides the line. */
function Label({ text, bad, side, x, y }: LabelProps) {
  const width = text.length * CHARACTER_PX + 4
  return (
    <>
      <rect x={side === 'from' ? x - 2 : x - width + 2} y={y - 7} width={width} height={14} />
      <text class={bad ? 'map-bad' : undefined} x={x} y={y + 3.5} text-anchor={side === 'from' ? 'start' : 'end'}>
        {text}
      </text>
    </>
  )
}

interface LineProps {
  readonly placed: PlacedEdge
  readonly seconds: number
  readonly near: boolean
  readonly arrow: boolean
}

function Line({ placed: { edge, from, to }, seconds, near, arrow }: LineProps) {
  const end = arrow ? to.x - 7 : to.x
  const middle = (from.x + end) / 2
  const rest = edge.from.startsWith(MORE) || edge.to.startsWith(MORE)
  const classes = [edge.errors > 0 ? 'map-bad' : '', near ? 'map-near' : rest ? 'map-rest' : ''].join(' ')
  return (
    <g class={classes}>
      <path
        d={`M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${end} ${to.y}`}
        stroke-width={widthOf(edge.messages / seconds)}
      />
      {arrow && <path class="arrow" d={`M${end} ${to.y - 4}l7 4l-7 4z`} />}
    </g>
  )
}

/** Returns the width of a line in px: 1 for a message a minute, and 1 more for ten times as many. */
function widthOf(perSecond: number): number {
  return Math.min(7, 1 + Math.max(0, Math.log10(perSecond * 60)))
}
