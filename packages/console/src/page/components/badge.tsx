import type { ComponentChildren } from 'preact'

export type BadgeKind = 'good' | 'warning' | 'bad' | 'neutral'

/** Signs in addition to the colors. */
const SIGNS: Readonly<Record<BadgeKind, string>> = { good: '✓', warning: '▲', bad: '✕', neutral: '•' }

/** A state in a word, with a sign and a color. */
export function Badge({ kind, children }: { readonly kind: BadgeKind; readonly children: ComponentChildren }) {
  return (
    <span class={`badge badge-${kind}`}>
      <span aria-hidden="true">{SIGNS[kind]}</span> {children}
    </span>
  )
}
