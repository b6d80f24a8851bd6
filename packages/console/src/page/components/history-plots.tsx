import { useMemo } from 'preact/hooks'

import { rangeOf, RANGES, spanOf, timesOf } from '../api/use-history.ts'
import type { HistoryData, HistoryRange } from '../api/use-history.ts'
import { setQuery, usePlace } from '../router/location.ts'
import { Segments } from './fields.tsx'
import { Empty } from './page.tsx'
import { Plot } from './plot.tsx'
import type { PlotProps } from './plot.tsx'
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
