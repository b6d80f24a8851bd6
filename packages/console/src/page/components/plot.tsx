import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

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
  /** In px. @default 150 */
  readonly height?: number
}

const STROKES = ['--plot-1', '--plot-2', '--plot-3', '--plot-4', '--plot-5'] as const
/** Lines differ by more than color. */
const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [10, 3, 2, 3], [1, 5]]

const dark = matchMedia('(prefers-color-scheme: dark)')

/** A plot of values over time. Its caption has the last values as text. */
export function Plot({ title, times, lines, format, height = 150 }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const scheme = useDark()
  const [at, setAt] = useState<number | null>(null)
  const labels = lines.map(({ label }) => label).join('\n')
  const data: uPlot.AlignedData = [times.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])]
  const latest = useRef({ data, format })
  latest.current = { data, format }
  useEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const made = new uPlot(
      optionsOf(labels.split('\n'), (value) => latest.current.format(value), height, setAt),
      latest.current.data,
      element,
    )
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
  }, [labels, height, scheme])
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

function optionsOf(
  labels: readonly string[],
  format: (value: number) => string,
  height: number,
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const text = color('--muted')
  const grid = { stroke: color('--line'), width: 1 }
  const font = '11px system-ui, sans-serif'
  return {
    width: 300,
    height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)] },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        stroke: text,
        grid: { show: false },
        ticks: { ...grid, size: 4 },
        font,
        size: 24,
        gap: 4,
        space: 70,
        values: clock,
      },
      {
        stroke: text,
        grid,
        ticks: { show: false },
        font,
        size: 52,
        gap: 4,
        space: 34,
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

const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })

function clock(_plot: uPlot, splits: number[]): string[] {
  return splits.map((seconds) => HOUR.format(seconds * 1_000))
}
