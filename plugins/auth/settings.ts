import { defineSettings } from '../../config/declaration.ts'
import { allSettings, host, list, origin } from '../../config/fields.ts'
import { oidc } from './oidc/settings.ts'
import type { AuthSettings } from './contract.ts'

const DESCRIPTION = 'Who may call the gateway.'

export default defineSettings<AuthSettings>({
	description: DESCRIPTION,
	required: true,
	at: {
		auth_mode: 'auth_mode',
		allowed_hosts: 'server.allowed_hosts',
		cors_origins: 'server.cors_origins',
		oidc: 'auth.oidc',
	},
	reads: { host: 'server.host' },
	topic: 'Addresses and access',
	schema: (joi) =>
		allSettings<AuthSettings, 'host'>({
			auth_mode: joi
				.string()
				.valid('loopback', 'token')
				.default('loopback')
				.description(
					'loopback: clients on this machine need no token; token: every request needs one. Default loopback.',
				),
			allowed_hosts: list(
				host().description('A host name.'),
				64,
				'Additional host names that local clients may use without a token.',
			).unique(),
			cors_origins: list(
				origin().description('An origin, such as https://app.example.com.'),
				64,
				'Origins whose pages may read the answers of the API, with a token: their requests never count as local.',
			).unique(),
			oidc: oidc(joi),
		}),
	banner({ auth_mode }, svc) {
		if (auth_mode === 'loopback') return []
		return [
			`Every request needs a token: "${svc} tokens create --scope '*'" creates the first. Set SVC_TOKEN to it, and for curl add -H "authorization: Bearer $SVC_TOKEN"`,
		]
	},
	examples: {
		auth: `# ${DESCRIPTION}
#auth:
  # The identity provider whose access tokens are accepted in addition to the gateway's own.
  #oidc:
    # Exactly as in \`iss\` of its tokens.
    #issuer: https://login.example.com
    # The value that tokens must have as \`aud\`. Default server.public_url, and that address with /mcp.
    #audience: [https://agents.example.com]
    # The gateway's own client at the provider, with which people sign in to the console.
    #client_id: svc-gateway
    # Preferably from the environment, as api_key of a provider above. Default none: a public client.
    #client_secret: the-secret-of-the-client
    # What callers may do, by the claims of their tokens. All matching rules apply.
    #rules:
      #- when: {groups: operators}
        #scopes: ['*']
      #- when: {groups: [support, sales]}
        #scopes: [agents:read, runs:write, events:read]
        #agents: [team-*]
        #limits: {runs_per_day: 500}
`,
	},
	environment({ SVC_LOOPBACK: text }) {
		if (text === undefined) return []
		const variable = 'SVC_LOOPBACK'
		const value = modeOf(text)
		// An empty value is a problem, too: whether tokens are required must not be a guess.
		const problem = 'must be 1, true, yes or on for loopback mode, or 0, false, no or off for token mode'
		return [{ path: 'auth_mode', variable, ...(value ? { value } : { problem }) }]
	},
})

function modeOf(text: string): AuthSettings['auth_mode'] | undefined {
	const word = text.trim().toLowerCase()
	if (['1', 'true', 'yes', 'on'].includes(word)) return 'loopback'
	if (['0', 'false', 'no', 'off'].includes(word)) return 'token'
	return undefined
}
