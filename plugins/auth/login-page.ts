/** A page of one paragraph, for browsers that come back from a login. It loads nothing. */
import { hash } from 'node:crypto'
import { pagePolicy } from '../shared/page-policy.ts'
import type { Auth } from './contract.ts'

const style = `:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }`
const policy = pagePolicy(`style-src 'sha256-${hash('sha256', style, 'base64')}'`)

/** As `Auth.loginPage`. */
export const loginPage: Auth['loginPage'] = (h, code, { title, text, next }) => {
	const refresh = next === undefined ? '' : `<meta http-equiv="refresh" content="0;url=${next}">`
	const html = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">${refresh}<title>${title}</title>
<style>${style}</style>
<h1>${title}</h1>
<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>
</html>
`
	return h
		.response(html)
		.code(code)
		.type('text/html')
		.header('content-security-policy', policy)
		.header('cache-control', 'no-store')
		.header('referrer-policy', 'no-referrer')
}
