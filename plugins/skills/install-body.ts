/** The body of a request to install a skill: JSON, or the bytes of an archive. */
import type { Request, ResponseToolkit } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { DOCUMENT_LIMIT } from './document.ts'
import { exampleSkill } from './example.ts'
import { FOLDER_LIMIT_BYTES } from './folder/contract.ts'
import type { SkillFolder } from './folder/contract.ts'
import { archiveTypes, folderOfDocument, folderOfFiles } from './folder/unpack.ts'

export interface InstallBody {
	url?: string
	content?: string
	files?: { path: string; content?: string; base64?: string }[]
	path?: string
}

/** Limit of the files in a body, which may contain several skills. */
const FILES_LIMIT = 1_000
/** 8 MiB in base64, and the JSON around it. */
const BODY_LIMIT = 12 * 1024 * 1024

/** The options with which a route accepts the bytes of an archive besides JSON. */
export const ARCHIVE_BODY = {
	payload: { allow: ['application/json', 'application/octet-stream'], maxBytes: BODY_LIMIT, timeout: 60_000 },
	/** Replaces the types of archives by the one for which hapi reads bytes. Like JSON, they require a preflight request in browsers. */
	accept(request: Request, h: ResponseToolkit): symbol {
		const type = /^[^;\s]*/.exec(String(request.headers['content-type']))?.[0].toLowerCase() ?? ''
		if (archiveTypes.has(type)) request.headers['content-type'] = 'application/octet-stream'
		return h.continue
	},
}

export const bodySchema = Joi.object<InstallBody>({
	url: Joi.string()
		.max(2048)
		.description(
			'The address of a document (at most 256 KiB of text/markdown or text/plain, or of application/octet-stream if its path ends in .md), of a .zip or .tar.gz (at most 32 MiB), or of the page of a folder on GitHub, GitLab, Gitea or Bitbucket: http or https.',
		)
		.example('https://skills.example.com/weather/SKILL.md'),
	content: Joi.string().max(DOCUMENT_LIMIT, 'utf8').description('The document of a skill without other files.'),
	files: Joi.array()
		.items(
			Joi.object({
				path: Joi.string().max(1000).required().description('Relative, such as `references/api.md`.'),
				content: Joi.string().allow('').max(FOLDER_LIMIT_BYTES, 'utf8').description('A text.'),
				base64: Joi.string().allow('').base64().description('The bytes of a file that is not text.'),
			})
				.xor('content', 'base64')
				.messages({
					'object.missing': '{#label} must have content or base64',
					'object.xor': '{#label} must have content or base64, not both',
				}),
		)
		.min(1)
		.max(FILES_LIMIT)
		.description('The files of a skill, including SKILL.md.'),
	path: Joi.string()
		.max(1000)
		.description("The skill's folder, if the address or `files` contain several skills.")
		.example('skills/weather'),
})
	.xor('url', 'content', 'files')
	.without('content', 'path')
	.messages({
		'object.missing': 'the body must have url, content or files, or be a .zip or .tar.gz',
		'object.xor': 'the body must have one of url, content and files',
		'object.without': 'path goes with url or files, not with content',
	})
	.required()
	.prefs({ convert: false })
	.example({ content: exampleSkill })

/** For hapi's validation; the bytes of an archive are checked when it is unpacked. */
export async function installBody(value: unknown): Promise<unknown> {
	if (Buffer.isBuffer(value)) return value
	const files: unknown = (value as InstallBody | null)?.files
	// Otherwise, all errors of a body with a hundred thousand files would be collected.
	const abortEarly = Array.isArray(files) && files.length > FILES_LIMIT
	return bodySchema.validateAsync(value, { abortEarly, errors: { wrap: { label: false } } })
}

/** Throws as `folderOfFiles` does. */
export function folderFrom({ content, files, path }: InstallBody): SkillFolder {
	for (const text of [content, ...(files ?? []).map((file) => file.content)])
		if (text !== undefined && !text.isWellFormed())
			throw new Fault(
				'skill_invalid',
				'a text contains an incomplete character; send a file that is not text as base64',
			)
	if (content !== undefined) return folderOfDocument(Buffer.from(content))
	const given = (files ?? []).map((file) => ({
		path: file.path,
		bytes: file.content === undefined ? Buffer.from(file.base64 ?? '', 'base64') : Buffer.from(file.content),
	}))
	return folderOfFiles(given, path)
}
