import type { ObjectSchema, Root } from 'joi'
import { limitFields } from '../limits.ts'
import type { OidcSettings } from './contract.ts'

const RULES_LIMIT = 64

/** The schema of `auth.oidc`. */
export function oidc(joi: Root): ObjectSchema<OidcSettings> {
	const value = joi.alternatives(joi.string().max(500), joi.number(), joi.boolean())
	const rule = joi
		.object({
			when: joi
				.object()
				.pattern(joi.string().max(200), joi.alternatives(value, joi.array().items(value).min(1).max(100)))
				.required()
				.description('Claims and their values. All claims must match; of a list of values, one must match.'),
			scopes: joi
				.array()
				.items(joi.string().max(100).description('A scope.'))
				.min(1)
				.required()
				.description('What these callers may do.'),
			agents: joi
				.array()
				.items(joi.string().pattern(/^[A-Za-z0-9._*-]{1,200}$/, 'the name of an agent, or a pattern with *'))
				.min(1)
				.max(100)
				.description('The agents that the scopes are for: names, or patterns with *. Default all agents.'),
			limits: joi
				.object(limitFields(joi, ' Default no limit.'))
				.description('What each of these callers may use. Default no limits.'),
		})
		.description('What callers with these claims may do.')
	return joi
		.object<OidcSettings>({
			issuer: joi
				.string()
				.max(2048)
				.pattern(/^https?:\/\/[^\s?#]+$/, 'an address such as https://login.example.com')
				.required()
				.description('The address of the identity provider, exactly as `iss` of its tokens.'),
			audience: joi
				.alternatives(
					joi.string().max(2048).description('A value of `aud`.'),
					joi.array().items(joi.string().max(2048)).min(1).max(16).description('Values of `aud`.'),
				)
				.description(
					'The accepted value of `aud`, or a list of values. Default server.public_url, and that address with /mcp.',
				),
			client_id: joi
				.string()
				.max(2048)
				.description(
					"The gateway's own client at the provider, with which people sign in to the console. Default none.",
				),
			client_secret: joi
				.string()
				.max(2048)
				.description('The secret of that client, preferably as ${VARIABLE}. Default none: a public client.'),
			rules: joi
				.array()
				.items(rule)
				.min(1)
				.max(RULES_LIMIT)
				.required()
				.description("What callers may do, by their tokens' claims. All matching rules apply."),
		})
		.allow(null)
		.default(null)
		.description(
			"The identity provider whose access tokens are accepted in addition to the gateway's own. Default null.",
		)
}
