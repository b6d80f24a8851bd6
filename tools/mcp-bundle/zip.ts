import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

/** A file in an archive. */
export interface ArchivedFile {
  /** With slashes, relative to the root of the archive. */
  readonly path: string
  readonly content: Buffer
}

const LOCAL = 0x04034b50
const CENTRAL = 0x02014b50
const END = 0x06054b50

const VERSION = 20
/** The names of files are UTF-8. */
const UTF8_NAMES = 0x0800
const DEFLATED = 8
/** The first day that the format can express. All files have it, so that equal files make equal archives. */
const FIRST_DAY = 0x0021
/** A file of Unix, readable for all, in the upper half of the attributes. */
const ATTRIBUTES = 0o100644 * 0x10000

/** Returns the files as a zip archive. Equal files make equal archives. */
export function zip(files: readonly ArchivedFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { path, content } of files) {
    const name = Buffer.from(path)
    const deflated = deflateRawSync(content, { level: 9 })
    const common = Buffer.alloc(26)
    common.writeUInt16LE(VERSION, 0)
    common.writeUInt16LE(UTF8_NAMES, 2)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt16LE(FIRST_DAY, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(deflated.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([uint32(LOCAL), common, name, deflated])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(ATTRIBUTES, 6)
    tail.writeUInt32LE(offset, 10)
    // The version of the program that made the archive; its upper byte is Unix.
    const madeBy = Buffer.from([VERSION, 3])
    directory.push(Buffer.concat([uint32(CENTRAL), madeBy, common, tail, name]))
    parts.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(central.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...parts, central, uint32(END), end])
}

/**
 * Returns the files of an archive that {@link zip} made, in their order.
 * @throws Error for another or a damaged archive
 */
export function unzip(archive: Buffer): readonly ArchivedFile[] {
  const end = archive.length - 22
  if (end < 0 || archive.readUInt32LE(end) !== END) throw new Error('the archive has no directory at its end')
  const files: ArchivedFile[] = []
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (archive.readUInt32LE(at) !== CENTRAL) throw new Error(`the directory of the archive is damaged at byte ${at}`)
    const nameLength = archive.readUInt16LE(at + 28)
    const path = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const start = archive.readUInt32LE(at + 42) + 30 + nameLength
    const content = inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20)))
    if (crc32(content) !== archive.readUInt32LE(at + 16)) throw new Error(`${path}: the checksum is wrong`)
    files.push({ path, content })
    at += 46 + nameLength
  }
  return files
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
