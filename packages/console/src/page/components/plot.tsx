import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

/** A line of a plot. */
export interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
}

export interface PlotProps {
  readonly title: string
  /** The times of the values, in ms since the epoch. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** Writes a value for the axis and for the reader. */
  readonly format: (value: number) => string
  /** The length of the time axis, in ms. @default the time of the values */
  readonly spanMs?: number | undefined
  /** The lines of the grid: at whole numbers for counts, at powers of two for sizes. @default any */
  readonly grid?: Grid
  /** In px. @default 150 */
  readonly height?: number
}

type Grid = 'any' | 'whole' | 'binary'

const STROKES = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5'] as const
/** Lines differ by more than color. */
const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [10, 3, 2, 3], [1, 5]]

const dark = matchMedia('(prefers-color-scheme: dark)')

/** A plot of values over time. Its caption has the last values as text. */
export function Plot({ title, times, lines, format, spanMs, grid = 'any', height = 150 }: PlotProps) {
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
      height,
      format: (value) => latest.current.format(value),
      spanMs: () => latest.current.spanMs,
      onCursor: setAt,
    })
    const made = new uPlot(options, latest.current.data, element)
    plot.current = made
    const sized = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0)
      if (width > 0) made.setSize({ width, height })
    })
    sized.observe(element)
    return () => {
      sized.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [labels, height, grid, scheme])
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
      <div ref={frame} class="plot-frame" style={{ height: `${height}px` }} aria-hidden="true" />
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
  readonly height: number
  readonly format: (value: number) => string
  readonly spanMs: () => number | undefined
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

function optionsOf({ labels, grid, height, format, spanMs, onCursor }: PlotParts): uPlot.Options {
  const text = color('--muted')
  const line = { stroke: color('--line'), width: 1 }
  const font = '11px system-ui, sans-serif'
  return {
    width: 300,
    height,
    legend: { show: false },
    padding: [8, 18, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)] },
    scales: {
      x: { range: (_plot, min, max) => [spanMs() === undefined ? min : max - (spanMs() ?? 0) / 1_000, max] },
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
