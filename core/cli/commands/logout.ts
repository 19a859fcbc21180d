import { CliError } from '../contract.ts'
import type { Command } from '../command.ts'
import { removeToken } from '../logins.ts'

export default {
	description:
		'Remove the token that svc login stored for the address of the gateway. It stays valid until svc tokens revoke revokes it',
	examples: `
Examples:
  svc logout
  SVC_URL=https://gateway.example.com svc logout`,
	run({ api, home, out }) {
		const { url } = api
		if (!removeToken(home, url)) throw new CliError('not_found', `no token is stored for ${url}`)
		out.answer({ url }, () => `Logged out of ${url}. The token stays valid until it is revoked (svc tokens revoke ID).`)
	},
} satisfies Command
