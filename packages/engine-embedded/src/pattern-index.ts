import { isReservedChannel } from '@signalbox/broker-core'

interface Node<T> {
  readonly children: Map<string, Node<T>>
  /** What follows `*`. */
  star: Node<T> | undefined
  /** Patterns that end here. */
  readonly here: Set<T>
  /** Patterns that end here with `>`. */
  readonly open: Set<T>
}

/**
 * Members by subscription pattern, as a tree of the patterns' tokens: adding and removing takes as long as the pattern, and
 * finding those that match a channel looks only at branches that do. Matches as `channelMatcher` of broker-core does.
 */
export class PatternIndex<T> {
  readonly #root: Node<T> = newNode()

  add(pattern: string, member: T): void {
    const { tokens, open } = parse(pattern)
    let node = this.#root
    for (const token of tokens) {
      let next = childOf(node, token)
      if (!next) {
        next = newNode()
        if (token === '*') node.star = next
        else node.children.set(token, next)
      }
      node = next
    }
    if (open) node.open.add(member)
    else node.here.add(member)
  }

  remove(pattern: string, member: T): void {
    const { tokens, open } = parse(pattern)
    const path = [this.#root]
    for (const token of tokens) {
      const next = childOf(path.at(-1) ?? this.#root, token)
      if (!next) return
      path.push(next)
    }
    const last = path.at(-1)
    if (open) last?.open.delete(member)
    else last?.here.delete(member)
    for (let depth = tokens.length; depth > 0; depth--) {
      const parent = path[depth - 1]
      const node = path[depth]
      if (!parent || !node || !isEmpty(node)) return
      const token = tokens[depth - 1] ?? ''
      if (token === '*') parent.star = undefined
      else parent.children.delete(token)
    }
  }

  /** Every member whose pattern matches the channel, in no order. */
  matching(channel: string): T[] {
    const found: T[] = []
    // A wildcard in the first place never reaches the broker's own channels (M8).
    collect(this.#root, channel.split('.'), 0, !isReservedChannel(channel), found)
    return found
  }
}

function collect<T>(node: Node<T>, tokens: readonly string[], depth: number, wildcards: boolean, found: T[]): void {
  const token = tokens[depth]
  if (token === undefined) {
    for (const member of node.here) found.push(member)
    return
  }
  if (wildcards) {
    for (const member of node.open) found.push(member)
    if (node.star) collect(node.star, tokens, depth + 1, true, found)
  }
  const child = node.children.get(token)
  if (child) collect(child, tokens, depth + 1, true, found)
}

function parse(pattern: string): { tokens: string[]; open: boolean } {
  const tokens = pattern.split('.')
  const open = tokens.at(-1) === '>'
  if (open) tokens.pop()
  return { tokens, open }
}

function childOf<T>(node: Node<T>, token: string): Node<T> | undefined {
  return token === '*' ? node.star : node.children.get(token)
}

function newNode<T>(): Node<T> {
  return { children: new Map(), star: undefined, here: new Set(), open: new Set() }
}

function isEmpty<T>({ children, star, here, open }: Node<T>): boolean {
  return children.size === 0 && star === undefined && here.size === 0 && open.size === 0
}
