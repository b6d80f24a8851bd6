import { isReservedChannel } from '../channel.ts'

interface Node<T> {
  readonly children: Map<string, Node<T>>
  /** Values of the pattern that ends at this node. */
  readonly here: Set<T>
  /** Values of the pattern that continues with `>`. */
  readonly rest: Set<T>
}

function emptyNode<T>(): Node<T> {
  return { children: new Map(), here: new Set(), rest: new Set() }
}

/**
 * Finds values by subscription pattern for a channel. A tree with one level per token: the cost of a lookup depends on
 * the matching patterns, not on the number of patterns. Matches like `channelMatcher`, including the rule for reserved
 * channels.
 */
export class PatternIndex<T> {
  readonly #root = emptyNode<T>()

  add(pattern: string, value: T): void {
    const { tokens, open } = parse(pattern)
    let node = this.#root
    for (const token of tokens) {
      let child = node.children.get(token)
      if (child === undefined) node.children.set(token, (child = emptyNode()))
      node = child
    }
    ;(open ? node.rest : node.here).add(value)
  }

  delete(pattern: string, value: T): void {
    const { tokens, open } = parse(pattern)
    const path = [this.#root]
    for (const token of tokens) {
      const child = path.at(-1)?.children.get(token)
      if (child === undefined) return
      path.push(child)
    }
    const last = path.at(-1)
    if (last) (open ? last.rest : last.here).delete(value)
    for (let depth = tokens.length; depth > 0; depth--) {
      const node = path[depth]
      if (node === undefined || node.children.size + node.here.size + node.rest.size > 0) return
      path[depth - 1]?.children.delete(tokens[depth - 1] ?? '')
    }
  }

  /** Returns the values of every pattern that matches the channel. */
  matching(channel: string): T[] {
    const values: T[] = []
    this.#visit(channel, (found) => {
      for (const value of found) values.push(value)
    })
    return values
  }

  /** Returns the number of values that {@link matching} finds. */
  count(channel: string): number {
    let count = 0
    this.#visit(channel, (found) => (count += found.size))
    return count
  }

  #visit(channel: string, found: (values: ReadonlySet<T>) => void): void {
    const tokens = channel.split('.')
    const visit = (node: Node<T>, depth: number): void => {
      const token = tokens[depth]
      if (token === undefined) {
        found(node.here)
        return
      }
      const literal = node.children.get(token)
      if (literal) visit(literal, depth + 1)
      // A wildcard does not match the broker's own channels (M8).
      if (depth === 0 && isReservedChannel(channel)) return
      found(node.rest)
      const any = node.children.get('*')
      if (any) visit(any, depth + 1)
    }
    visit(this.#root, 0)
  }
}

function parse(pattern: string): { readonly tokens: readonly string[]; readonly open: boolean } {
  const tokens = pattern.split('.')
  const open = tokens.at(-1) === '>'
  return { tokens: open ? tokens.slice(0, -1) : tokens, open }
}
