/** The request fields that specify how a sender signs. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { schemeNames } from './contract.ts'

const headerName = Joi.string().pattern(/^[A-Za-z0-9-]{1,64}$/, 'the name of a header')

export const scheme = Joi.valid(...schemeNames).example('github')

export const custom = Joi.object({
	header: headerName.required().description('The header with the signature.').example('X-Acme-Signature'),
	algorithm: Joi.valid('sha1', 'sha256', 'sha512', 'token').description(
		'HMAC with this hash, or `token`: the header is the secret itself. Default `sha256`.',
	),
	encoding: Joi.valid('hex', 'base64').description('Encoding of the digest. Default `hex`.'),
	prefix: Joi.string().max(64).description('Prefix of the digest.').example('sha256='),
	signed: Joi.string()
		.max(256)
		.pattern(/\{body\}/, 'a template with {body}')
		.description('Template of the signed text, with `{body}`, `{timestamp}` and `{id}`. Default `{body}`.')
		.example('{timestamp}.{body}'),
	timestamp_header: headerName
		.description('The header with the time of the delivery, in seconds or milliseconds since 1970.')
		.example('X-Acme-Timestamp'),
	tolerance_s: Joi.number()
		.integer()
		.min(1)
		.max(86_400)
		.description("Seconds by which that time may differ from the gateway's. Default 300."),
	id_header: headerName.description('The header with the id of the delivery.').example('X-Acme-Delivery'),
})
	.custom((value: { signed?: string; timestamp_header?: string; id_header?: string }, helpers) => {
		const { signed = '', timestamp_header, id_header } = value
		if (signed.includes('{timestamp}') && timestamp_header === undefined)
			return helpers.message({ custom: '{#label} needs timestamp_header, since signed contains {timestamp}' })
		if (signed.includes('{id}') && id_header === undefined)
			return helpers.message({ custom: '{#label} needs id_header, since signed contains {id}' })
		return value
	})
	.id('WebhookCustomScheme')

export const secret = Joi.string()
	.min(16)
	.max(512)
	.pattern(/^[\x21-\x7e]+$/, 'printable characters without spaces')
	.example('secret-of-the-sender')
