import type { ComponentChildren } from 'preact'

interface PageProps {
  readonly title: ComponentChildren
  /** Small text next to the title, such as a count. */
  readonly note?: ComponentChildren
  /** Buttons and filters at the right of the title. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** The frame of a screen: its title, its actions, its content. */
export function Page({ title, note, actions, children }: PageProps) {
  return (
    <div class="page">
      <div class="page-head">
        <h1>{title}</h1>
        {note !== undefined && <span class="muted">{note}</span>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

interface PanelProps {
  readonly title: ComponentChildren
  readonly note?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}

/** A part of a screen with a heading of its own. */
export function Panel({ title, note, actions, children, ...rest }: PanelProps) {
  return (
    <section class={rest.class === undefined ? 'panel' : `panel ${rest.class}`}>
      <div class="panel-head">
        <h2>{title}</h2>
        {note !== undefined && <span class="muted">{note}</span>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  )
}
