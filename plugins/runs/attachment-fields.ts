/** Attachments in requests and answers. */
import { Joi } from '../../core/util/lazy-joi.ts'

const blob = Joi.string()
	.pattern(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
	.description('An uploaded blob, or one of an earlier message.')
	.example('sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08')

export const attachment = Joi.object({
	type: Joi.valid('image', 'file', 'audio').required(),
	blob: blob.required().description('Its bytes are at GET /v1/agents/{name}/blobs/{digest}.'),
	media_type: Joi.string().required(),
	size: Joi.number().integer().required().description('Bytes.'),
	name: Joi.string(),
	seconds: Joi.number().integer().description('Length of a recording.'),
	transcript: Joi.string()
		.allow('', null)
		.description('What is said in a recording; null if it could not be transcribed.'),
}).id('Attachment')

export const attachmentsGiven = Joi.array()
	.items(
		Joi.object({
			blob,
			data: Joi.string().description('The bytes as base64, or a data: URL.'),
			url: Joi.string()
				.max(8192)
				.description('An http or https address at a public address, from which the gateway fetches the bytes.'),
			name: Joi.string().max(1000).description('Name of the file, for the model.'),
			media_type: Joi.string().max(200).description('Used only if the type cannot be detected from the bytes.'),
		})
			.xor('blob', 'data', 'url')
			.id('NewAttachment'),
	)
	.max(32)
	.description('Images, files and recordings for the model. Give exactly one of blob, data and url for each.')
