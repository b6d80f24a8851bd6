import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

import { count, plural, UserText, visible } from '../../components/values.tsx'
import { areFew, COLUMNS, nextRows, NO_ROWS, placed } from './layout.ts'
import type { Column, Layout, MapData, MapEdge, MapNode, PlacedNode, Rows } from './layout.ts'
import { Lines } from './lines.tsx'
import { kindOf, nameOf, pace } from './values.tsx'

const TITLES: Readonly<Record<Column, string>> = {
  left: 'Callers',
  middle: 'Channels and agents',
  right: 'Receivers and webhooks',
}

interface DrawingProps {
  /** The parameters of the map: for others, nodes get new places. */
  readonly name: string
  readonly data: MapData
  readonly linkOf: (node: MapNode) => string
}

/** The map as a picture: nodes in three columns, messages from left to right. A node keeps its place while it is shown. */
export function Drawing({ name, data, linkOf }: DrawingProps) {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [focused, setFocused] = useState<string>()
  const [hovered, setHovered] = useState<string>()
  const [last, setLast] = useState<string>()
  const { rows, tall } = useRows(name, data.nodes, focused)
  const layout = useMemo(() => placed(rows, data, width, tall), [rows, data, width, tall])
  const figures = useMemo(() => figuresOf(data.edges), [data])
  const nodes = COLUMNS.flatMap((column) => layout.columns[column])
  const entry = nodes.some(({ node }) => node.id === last) ? last : nodes[0]?.node.id
  const marked = hovered ?? focused
  const near = marked === undefined ? undefined : neighborsOf(marked, data.edges)
  return (
    <div
      ref={frame}
      class={`map ${tall ? 'map-tall' : ''} ${near === undefined ? '' : 'map-marked'}`}
      role="group"
      aria-label="Map. The arrow keys move between nodes, Enter opens one. The table below has the same connections."
      style={{ height: `${layout.height}px` }}
      onKeyDown={(event) => move(event, layout, frame.current)}
    >
      <Lines layout={layout} seconds={data.seconds} marked={marked} width={width} />
      {COLUMNS.map((column) => (
        <section key={column}>
          <h2
            id={`map-${column}`}
            style={{ left: `${leftOf(column, layout, width)}px`, width: `${layout.columnWidth}px` }}
          >
            {TITLES[column]}
          </h2>
          <ul aria-labelledby={`map-${column}`}>
            {layout.columns[column].map((one) => (
              <Node
                key={one.node.id}
                placed={one}
                tall={tall}
                narrow={layout.narrow}
                seconds={data.seconds}
                figures={figures.get(one.node.id)}
                link={linkOf(one.node)}
                class={
                  near === undefined ? '' : one.node.id === marked ? 'map-self' : near.has(one.node.id) ? '' : 'map-far'
                }
                tabIndex={one.node.id === entry ? 0 : -1}
                onFocus={() => {
                  setFocused(one.node.id)
                  setLast(one.node.id)
                }}
                onBlur={() => setFocused(undefined)}
                onHover={(inside) => setHovered(inside ? one.node.id : undefined)}
              />
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}

function leftOf(column: Column, { columnWidth }: Layout, width: number): number {
  return column === 'left' ? 0 : column === 'right' ? width - columnWidth : Math.floor((width - columnWidth) / 2)
}

/** Keeps the rows of the nodes from one answer to the next. */
function useRows(
  name: string,
  nodes: readonly MapNode[],
  keep: string | undefined,
): { readonly rows: Rows; readonly tall: boolean } {
  const kept = useRef({ name, rows: NO_ROWS, tall: true })
  return useMemo(() => {
    if (kept.current.name !== name) kept.current = { name, rows: NO_ROWS, tall: true }
    const rows = nextRows(kept.current.rows, nodes, keep)
    // Low once, low until the operator asks for something else: nodes must not jump.
    const tall = kept.current.tall && areFew(rows)
    kept.current = { name, rows, tall }
    return { rows, tall }
  }, [name, nodes])
}

function useWidth(frame: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const measure = (): void => setWidth(element.clientWidth)
    const observer = new ResizeObserver(measure)
    measure()
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return width
}

function neighborsOf(id: string, edges: readonly MapEdge[]): ReadonlySet<string> {
  return new Set(edges.flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : [])))
}

/** The sums of the edges of a node. */
interface Figures {
  messagesIn: number
  messagesOut: number
  errors: number
  /** The edges that end at the node, and those that begin there. */
  into: number
  out: number
}

const NO_FIGURES: Figures = { messagesIn: 0, messagesOut: 0, errors: 0, into: 0, out: 0 }

function figuresOf(edges: readonly MapEdge[]): ReadonlyMap<string, Figures> {
  const figures = new Map<string, Figures>()
  const of = (id: string): Figures => {
    const known = figures.get(id) ?? { ...NO_FIGURES }
    figures.set(id, known)
    return known
  }
  for (const { from, to, messages, errors } of edges) {
    const [sender, receiver] = [of(from), of(to)]
    sender.messagesOut += messages
    sender.errors += errors
    sender.out++
    receiver.messagesIn += messages
    receiver.errors += errors
    receiver.into++
  }
  return figures
}

interface NodeProps {
  readonly placed: PlacedNode
  readonly tall: boolean
  readonly narrow: boolean
  readonly seconds: number
  readonly figures: Figures | undefined
  readonly link: string
  readonly class: string
  readonly tabIndex: number
  readonly onFocus: () => void
  readonly onBlur: () => void
  readonly onHover: (inside: boolean) => void
}

function Node({
  placed: { node, x, y, width, height },
  tall,
  narrow,
  seconds,
  figures = NO_FIGURES,
  link,
  tabIndex,
  onFocus,
  onBlur,
  onHover,
  ...rest
}: NodeProps) {
  const { messagesIn, messagesOut, errors, into, out } = figures
  const rates = [
    ...(into > 0 ? [`${pace(messagesIn, seconds)} in`] : []),
    ...(out > 0 ? [`${pace(messagesOut, seconds)} out`] : []),
  ]
  return (
    <li
      class={`${rest.class} map-${node.kind}`}
      style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }}
      onMouseEnter={() => onHover(true)}
      onMouseLeave={() => onHover(false)}
    >
      <a
        href={link}
        data-node={node.id}
        tabIndex={tabIndex}
        onFocus={onFocus}
        onBlur={onBlur}
        title={visible(`${kindOf(node)}: ${nameOf(node)}`)}
      >
        <span class="map-name">
          <UserText>{nameOf(node)}</UserText>
        </span>
        <small class={!tall && narrow ? 'hidden-text' : undefined}>
          {' '}
          <span class={tall ? undefined : 'hidden-text'}>
            {kindOf(node)}
            {rates.length > 0 && ': '}
          </span>
          {rates.join(', ')}
        </small>
        {errors > 0 && (
          <>
            <span class="map-errors" aria-hidden="true">
              ✕ {count(errors)}
            </span>
            <span class="hidden-text">, {plural(errors, 'error')}</span>
          </>
        )}
        <span class="hidden-text">, {plural(into + out, 'connection')}</span>
      </a>
    </li>
  )
}

/** Moves the focus between nodes: up and down in a column, to the nearest node of another column, to the first and last one. */
function move(event: KeyboardEvent, { columns }: Layout, frame: HTMLElement | null): void {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement)) return
  const id = event.target.dataset['node']
  const column = COLUMNS.find((one) => columns[one].some(({ node }) => node.id === id))
  if (column === undefined) return
  const row = columns[column].findIndex(({ node }) => node.id === id)
  const next = nextOf(event.key, columns, column, row)
  if (next === undefined) return
  event.preventDefault()
  for (const link of frame?.querySelectorAll<HTMLElement>('[data-node]') ?? []) {
    if (link.dataset['node'] === next.node.id) link.focus()
  }
}

function nextOf(key: string, columns: Layout['columns'], column: Column, row: number): PlacedNode | undefined {
  const nodes = columns[column]
  if (key === 'ArrowDown') return nodes[row + 1]
  if (key === 'ArrowUp') return nodes[row - 1]
  if (key === 'Home') return nodes[0]
  if (key === 'End') return nodes.at(-1)
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return undefined
  const y = nodes[row]?.y ?? 0
  const at = COLUMNS.indexOf(column)
  const others = key === 'ArrowLeft' ? COLUMNS.slice(0, at).toReversed() : COLUMNS.slice(at + 1)
  const target = others.find((one) => columns[one].length > 0)
  return target && columns[target].toSorted((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y))[0]
}
