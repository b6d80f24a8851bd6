import { integer } from 'fast-check'

const SURROGATES = 0x800
const FIRST_SURROGATE = 0xd800
const LAST = 0x10ffff

/**
 * Any code point but the surrogates, as one string: the `unit` of a `string`. It has the values of the unit `binary` of
 * fast-check, which takes a second and 200 MB to list all code points.
 */
export const anyCharacter = integer({ min: 0, max: LAST - SURROGATES }).map(
  (n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined
    if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('it is not one character')
    if (point < FIRST_SURROGATE) return point
    if (point < FIRST_SURROGATE + SURROGATES) throw new Error('it is a surrogate')
    return point - SURROGATES
  },
)
