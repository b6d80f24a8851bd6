import { notify } from './page.tsx'

/** Offers content as a file that the browser saves. */
export function saveFile(name: string, content: readonly BlobPart[]): void {
  // The type keeps a browser from showing the file as a page.
  const url = URL.createObjectURL(new Blob([...content], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Copies text. Pages without TLS on another machine have no clipboard, and no button. */
export function CopyButton({ text }: { readonly text: string }) {
  if (navigator.clipboard === undefined) return null
  return (
    <button type="button" onClick={() => void navigator.clipboard.writeText(text).then(() => notify('Copied.'))}>
      Copy
    </button>
  )
}
