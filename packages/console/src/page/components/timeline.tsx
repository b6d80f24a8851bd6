import type { ComponentChildren } from 'preact'

import { span, Time } from './values.tsx'
import './timeline.css'

/** One event of a timeline. */
interface TimelineEvent {
  /** ISO 8601. */
  readonly time: string
  readonly title: ComponentChildren
  readonly detail?: ComponentChildren
}

/** Events in their order, with the time between them. */
export function Timeline({ label, events }: { readonly label: string; readonly events: readonly TimelineEvent[] }) {
  return (
    <ol class="timeline" aria-label={label}>
      {events.map(({ time, title, detail }, index) => {
        const before = events[index - 1]
        return (
          <li key={index}>
            <span class="timeline-time">
              <Time value={time} />
              {before !== undefined && (
                <small class="muted">+{span(Math.max(0, Date.parse(time) - Date.parse(before.time)))}</small>
              )}
            </span>
            <div>
              <strong>{title}</strong>
              {detail !== undefined && <div class="timeline-detail">{detail}</div>}
            </div>
          </li>
        )
      })}
    </ol>
  )
}
