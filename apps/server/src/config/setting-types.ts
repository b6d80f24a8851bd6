import { Type } from 'typebox'

/** The kinds of settings in the schema. */

interface About {
  readonly description: string
}

const SAFE_INTEGER = Number.MAX_SAFE_INTEGER

export const integer = (defaultValue: number, minimum: number, maximum: number, about: About) =>
  Type.Integer({ default: defaultValue, minimum, maximum, ...about })

export const count = (defaultValue: number, about: About) => integer(defaultValue, 0, SAFE_INTEGER, about)

export const flag = (defaultValue: boolean, about: About) => Type.Boolean({ default: defaultValue, ...about })

export const host = (defaultValue: string, about: About) =>
  Type.String({
    default: defaultValue,
    pattern: '^[A-Za-z0-9._:%-]{1,255}$',
    allowed: 'an IP address or a host name, without brackets and port',
    ...about,
  })

export const list = (defaultValue: readonly string[], pattern: string, allowed: string, about: About, minItems = 0) =>
  Type.Array(Type.String({ pattern }), { default: [...defaultValue], minItems, allowed, ...about })

/** Matches an origin. */
export const ORIGIN = 'https?://(?:\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?'
/** Matches a header name or a method (RFC 9110, 5.6.2). */
export const HTTP_TOKEN = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

export const trustedOriginsSetting = (about: About) =>
  list(
    ['auto'],
    `^(?:auto|\\*|${ORIGIN})$`,
    'auto, or *, or a list of origins such as https://app.example.com:8443',
    about,
    1,
  )

export const hosts = (about: About) =>
  list(
    [],
    '^[A-Za-z0-9*.:/_-]{1,255}$',
    'a list of host names, patterns such as *.example.com, addresses and CIDR ranges',
    about,
  )

export const path = (about: About & { readonly allowed?: string }) =>
  Type.String({ default: '', allowed: 'a path; empty means none', ...about })

export const group = <P extends Type.TProperties>(description: string, properties: P) =>
  Type.Object(properties, { additionalProperties: false, description })
