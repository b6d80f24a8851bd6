import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

import { Empty } from './page.tsx'
import { Ago, bytes, count, Time, UserText } from './values.tsx'

/** The members of a row with values of a type. */
type KeyOf<Row, Value> = { [Key in keyof Row]-?: Row[Key] extends Value ? Key : never }[keyof Row]

/** What the cells of a column show: a member of the row in a usual form, or what `cell` makes of the row. */
type Content<Row> =
  | { readonly cell: (row: Row) => ComponentChildren }
  /** A number, aligned to the right. */
  | { readonly count: KeyOf<Row, number> }
  /** A size in bytes, aligned to the right. */
  | { readonly bytes: KeyOf<Row, number> }
  /** A point in time, and the time since then. */
  | { readonly time: KeyOf<Row, string | null | undefined> }
  | { readonly ago: KeyOf<Row, string | null | undefined> }
  /** Text that a user wrote. */
  | { readonly text: KeyOf<Row, string | undefined> }

/** A column of a table. */
export type Column<Row> = Content<Row> & {
  /** What the order of the rows calls the column. @default the title */
  readonly id?: string
  readonly title: string
  /** `true` aligns the cells to the right. @default true for counts and sizes */
  readonly numeric?: boolean
  /** A CSS width, such as `8rem`. @default the space that is left */
  readonly width?: string
  /** `true` if the rows can be ordered by the column. @default false */
  readonly sortable?: boolean
  /** `true` hides the column on narrow screens. @default false */
  readonly wideOnly?: boolean
}

function isNumeric<Row>(column: Column<Row>): boolean {
  return column.numeric ?? ('count' in column || 'bytes' in column)
}

function contentOf<Row>(column: Column<Row>, row: Row): ComponentChildren {
  if ('cell' in column) return column.cell(row)
  if ('count' in column) return count(Number(row[column.count]))
  if ('bytes' in column) return bytes(Number(row[column.bytes]))
  if ('time' in column) return <Time value={textIn(row[column.time])} />
  if ('ago' in column) return <Ago value={textIn(row[column.ago])} />
  return <UserText>{textIn(row[column.text]) ?? ''}</UserText>
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

interface Sorting {
  readonly column: string
  readonly descending: boolean
}

interface TableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** Stands in place of a table without rows: why it is empty, and what would fill it. @default an empty table */
  readonly empty?: ComponentChildren
  readonly sorting?: Sorting | undefined
  readonly onSort?: (sorting: Sorting) => void
  /** Called near the end of the rows, to load more of them. */
  readonly onEnd?: (() => void) | undefined
  /** Opens a row, with a click or with Enter on the row. */
  readonly onOpen?: (row: Row) => void
  readonly isSelected?: (row: Row) => boolean
}

const ROW_PX = 30
/** Rows above and below the visible part. */
const MARGIN = 12
/** Fewer rows are all in the page. */
const ALL = 100

/**
 * A table of any length: only the visible rows are in the page. The table scrolls with the page, so
 * there is one scroll bar.
 */
export function Table<Row>({ empty, ...props }: TableProps<Row>) {
  if (props.rows.length === 0 && empty !== undefined) return <Empty>{empty}</Empty>
  return <Rows {...props} />
}

function Rows<Row>(props: Omit<TableProps<Row>, 'empty'>) {
  const { label, columns, rows, keyOf, sorting, onSort, onEnd, onOpen, isSelected } = props
  const body = useRef<HTMLTableSectionElement>(null)
  const [[first, last], setRange] = useState<readonly [number, number]>([0, ALL])
  useLayoutEffect(() => {
    const measure = (): void => {
      const top = body.current?.getBoundingClientRect().top ?? 0
      const from = rows.length <= ALL ? 0 : Math.max(0, Math.floor(-top / ROW_PX) - MARGIN)
      const to =
        rows.length <= ALL ? rows.length : Math.min(rows.length, Math.ceil((innerHeight - top) / ROW_PX) + MARGIN)
      setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]))
      if (rows.length * ROW_PX + top < innerHeight * 2) onEnd?.()
    }
    measure()
    addEventListener('scroll', measure, { passive: true })
    addEventListener('resize', measure)
    return () => {
      removeEventListener('scroll', measure)
      removeEventListener('resize', measure)
    }
  }, [rows, onEnd])
  const shown = rows.slice(first, last)
  return (
    <div class="table-frame">
      <table aria-label={label} aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ title, id = title, width, wideOnly }) => (
            <col
              key={id}
              class={wideOnly === true ? 'wide-only' : undefined}
              style={width === undefined ? {} : { width }}
            />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell key={column.id ?? column.title} column={column} sorting={sorting} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer rows={first} columns={columns.length} />
          {shown.map((row, index) => (
            <tr
              key={keyOf(row)}
              aria-rowindex={first + index + 2}
              class={onOpen === undefined ? undefined : 'opens'}
              aria-selected={isSelected?.(row)}
              tabIndex={onOpen === undefined ? undefined : 0}
              onClick={onOpen === undefined ? undefined : (event) => isControl(event.target) || onOpen(row)}
              onKeyDown={(event) => {
                if (event.target !== event.currentTarget) return
                if (event.key === 'Enter' && onOpen !== undefined) onOpen(row)
                else if (event.key === 'ArrowDown' || event.key === 'j')
                  move(event, event.currentTarget.nextElementSibling)
                else if (event.key === 'ArrowUp' || event.key === 'k')
                  move(event, event.currentTarget.previousElementSibling)
              }}
            >
              {columns.map((column) => (
                <td key={column.id ?? column.title} class={classOf(column)}>
                  {contentOf(column, row)}
                </td>
              ))}
            </tr>
          ))}
          <Spacer rows={Math.max(0, rows.length - Math.max(last, first))} columns={columns.length} />
        </tbody>
      </table>
    </div>
  )
}

interface HeadCellProps<Row> {
  readonly column: Column<Row>
  readonly sorting: Sorting | undefined
  readonly onSort: ((sorting: Sorting) => void) | undefined
}

function HeadCell<Row>({ column, sorting, onSort }: HeadCellProps<Row>) {
  const { title, id = title, sortable = false } = column
  const sorted = sorting?.column === id
  const descending = sorted && sorting.descending
  return (
    <th scope="col" class={classOf(column)} aria-sort={sorted ? (descending ? 'descending' : 'ascending') : undefined}>
      {sortable && onSort !== undefined ? (
        <button
          type="button"
          onClick={() => onSort({ column: id, descending: sorted ? !descending : isNumeric(column) })}
        >
          {title}
          <span aria-hidden="true">{sorted ? (descending ? ' ↓' : ' ↑') : ''}</span>
        </button>
      ) : (
        title
      )}
    </th>
  )
}

/** Keeps the height of the rows that are not in the page. */
function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows <= 0) return null
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={columns} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  )
}

function classOf<Row>(column: Column<Row>): string | undefined {
  const classes = [...(isNumeric(column) ? ['number'] : []), ...(column.wideOnly === true ? ['wide-only'] : [])]
  return classes.length === 0 ? undefined : classes.join(' ')
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('a, button, input, select, label') !== null
}

function move(event: Event, row: Element | null): void {
  event.preventDefault()
  if (row instanceof HTMLElement) row.focus()
}
