import type { GetData } from '../../api/client.ts'

export type MapData = GetData<'/api/map'>
export type MapNode = MapData['nodes'][number]
export type MapEdge = MapData['edges'][number]

export const COLUMNS = ['left', 'middle', 'right'] as const

export type Column = (typeof COLUMNS)[number]

/** The nodes of each column by their rows. A row is empty after its node had no more traffic. */
export type Rows = Readonly<Record<Column, readonly (MapNode | undefined)[]>>

export const NO_ROWS: Rows = { left: [], middle: [], right: [] }

/**
 * Returns the rows after a refresh: a node keeps its row while it is shown, and new nodes take free rows. At first, nodes
 * are in the order of their kind and name.
 * @param keep The id of a node that stays without traffic too, because it has the focus
 */
export function nextRows(rows: Rows, nodes: readonly MapNode[], keep?: string): Rows {
  return {
    left: nextColumn(rows.left, nodesOf(nodes, 'left'), keep),
    middle: nextColumn(rows.middle, nodesOf(nodes, 'middle'), keep),
    right: nextColumn(rows.right, nodesOf(nodes, 'right'), keep),
  }
}

/** The node that stands for all others is below the rows. */
function nodesOf(nodes: readonly MapNode[], column: Column): readonly MapNode[] {
  return nodes.filter((node) => node.column === column && node.kind !== 'more')
}

function nextColumn(
  rows: readonly (MapNode | undefined)[],
  nodes: readonly MapNode[],
  keep: string | undefined,
): readonly (MapNode | undefined)[] {
  const shown = new Map(nodes.map((node) => [node.id, node]))
  const next = rows.map((row) => {
    if (row === undefined) return undefined
    const node = shown.get(row.id)
    shown.delete(row.id)
    return node ?? (row.id === keep ? row : undefined)
  })
  for (const node of [...shown.values()].toSorted(byKindAndName)) {
    const free = next.indexOf(undefined)
    if (free === -1) next.push(node)
    else next[free] = node
  }
  return next.slice(0, next.findLastIndex((row) => row !== undefined) + 1)
}

const KINDS: readonly MapNode['kind'][] = ['caller', 'channel', 'agent', 'receiver', 'webhook', 'more']

function byKindAndName(a: MapNode, b: MapNode): number {
  return KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || order(a.name, b.name) || order(a.id, b.id)
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Columns with more rows are drawn with one line for each node. */
const MAX_TALL_ROWS = 12

const TALL = { height: 44, step: 58 }
const LOW = { height: 24, step: 29 }

/** Narrower pictures have smaller nodes, and titles in two lines. */
const NARROW_PX = 560

/** The place of a node in px. */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface PlacedNode extends Box {
  readonly node: MapNode
}

export interface PlacedEdge {
  readonly edge: MapEdge
  /** The points at the two nodes. */
  readonly from: { readonly x: number; readonly y: number }
  readonly to: { readonly x: number; readonly y: number }
}

export interface Layout {
  /** `true` if nodes have two lines, and edges have labels. */
  readonly tall: boolean
  readonly narrow: boolean
  readonly height: number
  readonly columnWidth: number
  readonly columns: Readonly<Record<Column, readonly PlacedNode[]>>
  readonly edges: readonly PlacedEdge[]
}

/** Returns `true` if the rows are few enough for nodes of two lines. */
export function areFew(rows: Rows): boolean {
  return COLUMNS.every((column) => rows[column].length <= MAX_TALL_ROWS)
}

/** Places nodes in three columns, and edges between them. Only the rows and the width decide about the place of a node. */
export function placed(rows: Rows, { nodes, edges }: MapData, width: number, tall: boolean): Layout {
  const { height, step } = tall ? TALL : LOW
  const narrow = width < NARROW_PX
  const head = narrow ? 40 : 24
  const columnWidth = Math.floor(narrow ? width * 0.29 : Math.min(width * 0.22, 240))
  const lefts = { left: 0, middle: Math.floor((width - columnWidth) / 2), right: width - columnWidth }
  const columnOf = (column: Column): readonly PlacedNode[] => {
    const more = nodes.find((node) => node.column === column && node.kind === 'more')
    return [...rows[column], more].flatMap((node, row) =>
      node === undefined ? [] : [{ node, x: lefts[column], y: head + row * step, width: columnWidth, height }],
    )
  }
  const columns = { left: columnOf('left'), middle: columnOf('middle'), right: columnOf('right') }
  const all = COLUMNS.flatMap((column) => columns[column])
  const bottom = Math.max(0, ...all.map(({ y }) => y + height))
  return {
    tall,
    narrow,
    height: bottom + 4,
    columnWidth,
    columns,
    edges: placedEdges(edges, new Map(all.map((one) => [one.node.id, one]))),
  }
}

/** Spreads the ends of edges over the sides of their nodes, in the order of the nodes at the other ends. */
function placedEdges(edges: readonly MapEdge[], boxes: ReadonlyMap<string, Box>): readonly PlacedEdge[] {
  const drawn = edges.flatMap((edge) => {
    const [from, to] = [boxes.get(edge.from), boxes.get(edge.to)]
    return from === undefined || to === undefined ? [] : [{ edge, from, to }]
  })
  const leaving = portsOf(
    drawn,
    (one) => one.from,
    (one) => one.to,
  )
  const arriving = portsOf(
    drawn,
    (one) => one.to,
    (one) => one.from,
  )
  return drawn.map((one) => ({
    edge: one.edge,
    from: { x: one.from.x + one.from.width, y: leaving.get(one) ?? one.from.y },
    to: { x: one.to.x, y: arriving.get(one) ?? one.to.y },
  }))
}

function portsOf<Edge>(
  edges: readonly Edge[],
  at: (edge: Edge) => Box,
  other: (edge: Edge) => Box,
): ReadonlyMap<Edge, number> {
  const ports = new Map<Edge, number>()
  for (const [{ y, height }, ends] of grouped(edges, at)) {
    const inOrder = ends.toSorted((a, b) => other(a).y - other(b).y)
    inOrder.forEach((edge, index) => ports.set(edge, y + (height * (index + 1)) / (inOrder.length + 1)))
  }
  return ports
}

/** Returns the items of each key. */
export function grouped<Key, Item>(
  items: readonly Item[],
  keyOf: (item: Item) => Key,
): ReadonlyMap<Key, readonly Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
