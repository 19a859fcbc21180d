/** A static page for browsers. It loads nothing and has no scripts; the policy allows its style sheet by its hash. */
import { hash } from 'node:crypto'
import { Joi } from '../../core/util/lazy-joi.ts'
import { pagePolicy } from './page-policy.ts'

const style = `:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }`

export const plainPolicy = pagePolicy(`style-src 'sha256-${hash('sha256', style, 'base64')}'`, 'img-src data:')

/** The complete document. All parameters are HTML. */
export function plainPage(title: string, content: string, head = ''): string {
	return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}<title>${title}</title>
<link rel="icon" href="data:,"><style>${style}</style>
<h1>${title}</h1>
${content}
</html>
`
}

/** For the description of the API: the HTML responses of a route, by status code. */
export function pageAnswers(...codes: readonly number[]) {
	return Object.fromEntries(codes.map((code) => [code, { 'text/html': Joi.string().example('<!doctype html>') }]))
}
