import type { ComponentChildren } from 'preact'

interface FactProps {
  readonly name: string
  readonly children: ComponentChildren
}

/** A name and its value, in a list of facts. */
export function Fact({ name, children }: FactProps) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}
