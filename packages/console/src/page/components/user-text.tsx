/** Characters that change the order or the visibility of the text around them, and control characters. */
const HIDDEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Returns the text with each hidden character as its number, such as `<U+202E>`. */
export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (character) => `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`,
  )
}

interface UserTextProps {
  readonly children: string
  /** The most characters to show; the title has more. @default 200 */
  readonly max?: number
  readonly class?: string
}

/** Text that a user wrote: names, tags, bodies in a row. It is isolated from the text around it. */
export function UserText({ children, max = 200, ...rest }: UserTextProps) {
  const shown = visible(children.slice(0, max))
  const cut = children.length > max
  return (
    <bdi
      class={rest.class === undefined ? 'user' : `user ${rest.class}`}
      title={cut ? visible(children.slice(0, 2_000)) : undefined}
    >
      {cut ? `${shown}…` : shown}
    </bdi>
  )
}
