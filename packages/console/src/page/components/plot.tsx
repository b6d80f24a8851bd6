import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

import { rangeOf, RANGES, spanOf, timesOf } from '../api/use-history.ts'
import type { HistoryData, HistoryRange } from '../api/use-history.ts'
import { setQuery, usePlace } from '../router/location.ts'
import { Segments } from './controls.tsx'
import { Empty } from './page.tsx'
import { span } from './values.tsx'

/** Returns the time span that the operator chose; it is in the place. */
export function useRange(): HistoryRange {
  return rangeOf(usePlace().query['range'])
}

/** The choice of the time span. */
export function RangeChoice() {
  return (
    <Segments
      label="Time span of the plots"
      value={useRange()}
      options={RANGES}
      onChange={(range) => setQuery({ range })}
    />
  )
}

/** What one plot shows of a history. */
export type HistoryPlot = Omit<PlotProps, 'times' | 'spanMs'>

interface HistoryPlotsProps {
  readonly history: HistoryData
  /** Returns the plots; none while the node knows nothing of the subject. */
  readonly plotsOf: (history: HistoryData) => readonly HistoryPlot[]
  /** Stands in place of no plots. @default nothing */
  readonly empty?: string
}

/** Plots of a history with one time axis. */
export function HistoryPlots({ history, plotsOf, empty }: HistoryPlotsProps) {
  const range = useRange()
  const times = useMemo(() => timesOf(history), [history])
  const plots = useMemo(() => plotsOf(history), [history])
  if (plots.length === 0) return <Empty>{empty}</Empty>
  return (
    <div class="grid">
      {plots.map((plot) => (
        <Plot key={plot.title} {...plot} times={times} spanMs={spanOf(range, history)} />
      ))}
    </div>
  )
}

/** Writes a duration of the history, which is in seconds. */
export function secondsSpan(seconds: number): string {
  return span(seconds * 1_000)
}

/** A line of a plot. */
export interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
}

interface PlotProps {
  readonly title: string
  /** The times of the values, in ms since the epoch. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** Writes a value for the axis and for the reader. */
  readonly format: (value: number) => string
  /** The length of the time axis, in ms. */
  readonly spanMs: number
  /** The lines of the grid: at whole numbers for counts, at powers of two for sizes. @default any */
  readonly grid?: Grid
}

type Grid = 'any' | 'whole' | 'binary'

const HEIGHT_PX = 150

const STROKES = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5'] as const
/** Lines differ by more than color. */
const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [10, 3, 2, 3], [1, 5]]

const dark = matchMedia('(prefers-color-scheme: dark)')

/** A plot of values over time. Its caption has the last values as text. */
function Plot({ title, times, lines, format, spanMs, grid = 'any' }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const scheme = useDark()
  const [at, setAt] = useState<number | null>(null)
  const labels = lines.map(({ label }) => label).join('\n')
  const data: uPlot.AlignedData = [times.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])]
  const latest = useRef({ data, format, spanMs })
  latest.current = { data, format, spanMs }
  useEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const options = optionsOf({
      labels: labels.split('\n'),
      grid,
      format: (value) => latest.current.format(value),
      spanMs: () => latest.current.spanMs,
      onCursor: setAt,
    })
    const made = new uPlot(options, latest.current.data, element)
    plot.current = made
    const sized = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0)
      if (width > 0) made.setSize({ width, height: HEIGHT_PX })
    })
    sized.observe(element)
    return () => {
      sized.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [labels, grid, scheme])
  useEffect(() => plot.current?.setData(latest.current.data), [times, lines])
  const shown = at ?? times.length - 1
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        {lines.map(({ label, values }, index) => {
          const value = values[shown]
          return (
            <span key={label} class={`legend legend-${index + 1}`}>
              <i aria-hidden="true" />
              {label} <b>{value === null || value === undefined ? '–' : format(value)}</b>
            </span>
          )
        })}
      </figcaption>
      <div ref={frame} class="plot-frame" style={{ height: `${HEIGHT_PX}px` }} aria-hidden="true" />
    </figure>
  )
}

function useDark(): boolean {
  const [value, setValue] = useState(dark.matches)
  useEffect(() => {
    const changed = (): void => setValue(dark.matches)
    dark.addEventListener('change', changed)
    return () => dark.removeEventListener('change', changed)
  }, [])
  return value
}

/** Returns the color that a custom property has in the present scheme. */
function color(property: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${property})`
  document.body.append(probe)
  const value = getComputedStyle(probe).color
  probe.remove()
  return value
}

interface PlotParts {
  readonly labels: readonly string[]
  readonly grid: Grid
  readonly format: (value: number) => string
  readonly spanMs: () => number
  readonly onCursor: (index: number | null) => void
}

/** The distances between lines of the time axis, in seconds. */
const TIME_STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600]

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent)

const WHOLE_NUMBERS = Array.from({ length: 15 }, (_, exponent) =>
  [1, 2, 5].map((digit) => digit * 10 ** exponent),
).flat()

/** The distances between lines of the grid that are allowed; those of uPlot if there is none. */
const DISTANCES: Readonly<Record<Grid, { readonly incrs?: number[] }>> = {
  any: {},
  whole: { incrs: WHOLE_NUMBERS },
  binary: { incrs: POWERS_OF_TWO },
}

function optionsOf({ labels, grid, format, spanMs, onCursor }: PlotParts): uPlot.Options {
  const text = color('--muted')
  const line = { stroke: color('--line'), width: 1 }
  const font = '11px system-ui, sans-serif'
  return {
    width: 300,
    height: HEIGHT_PX,
    legend: { show: false },
    padding: [8, 18, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)] },
    scales: {
      x: { range: (_plot, _min, max) => [max - spanMs() / 1_000, max] },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        stroke: text,
        grid: { show: false },
        ticks: { ...line, size: 4 },
        font,
        size: 24,
        gap: 4,
        space: 70,
        incrs: TIME_STEPS,
        values: clock,
      },
      {
        stroke: text,
        grid: line,
        ticks: { show: false },
        font,
        size: 52,
        gap: 4,
        space: 34,
        ...DISTANCES[grid],
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...labels.map((label, index) => ({
        label,
        stroke: color(STROKES[index % STROKES.length] ?? '--plot-1'),
        width: 1.5,
        dash: DASHES[index % DASHES.length] ?? [],
        points: { show: false },
        spanGaps: false,
      })),
    ],
  }
}

const HOURS = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const SECONDS = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
})

/** Returns the labels of the time axis; with seconds if lines of the grid are less than a minute apart. */
function clock(_plot: uPlot, splits: number[], _axis: number, _space: number, apart: number): string[] {
  const format = apart < 60 ? SECONDS : HOURS
  return splits.map((seconds) => format.format(seconds * 1_000))
}
