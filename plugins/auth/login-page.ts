import { plainPage, plainPolicy } from '../shared/plain-page.ts'
import type { Auth } from './contract.ts'

/** As `Auth.loginPage`. */
export const loginPage: Auth['loginPage'] = (h, code, { title, text, next }) => {
	const refresh = next === undefined ? '' : `<meta http-equiv="refresh" content="0;url=${next}">`
	const content = `<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`
	return h
		.response(plainPage(title, content, refresh))
		.code(code)
		.type('text/html')
		.header('content-security-policy', plainPolicy)
		.header('cache-control', 'no-store')
		.header('referrer-policy', 'no-referrer')
}
