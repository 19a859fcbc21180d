import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import { scoped } from '../shared/scopes.ts'
import type { AddedPages } from './added-pages.ts'
import { pages } from './pages.ts'

/** The name of a file changes with its content. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

const listed = Joi.object({
	pages: Joi.array()
		.items(
			Joi.object({
				plugin: Joi.string().required().example('tides'),
				title: Joi.string().required().example('Tides'),
				file: Joi.string()
					.required()
					.description('The page is the JavaScript module at /console/{file}.')
					.example('page-tides-8f14e45fceea167a.js'),
			}),
		)
		.required(),
}).id('ConsolePages')

/** The files are public: they contain no data of the gateway. The pages read data from the API, as their caller. */
export function routes(server: Server, added: AddedPages): void {
	server.route({
		method: 'GET',
		path: '/v1/console',
		options: {
			id: 'listConsolePages',
			description: 'List the pages that plugins add to the console',
			tags: ['api', 'gateway'],
			auth: scoped('agents:read'),
			response: { status: { 200: listed } },
		},
		handler: () => ({ pages: added.list() }),
	})
	server.route<{ Params: { file: string } }>({
		method: 'GET',
		path: '/console/{file}',
		options: {
			id: 'getConsoleFile',
			description: 'A file of the console, which GET / shows to browsers',
			tags: ['api', 'gateway'],
			auth: false,
			validate: {
				params: Joi.object({
					file: Joi.string().max(128).required().description('Name of the file.').example('app-2RK4ISHG.js'),
				}),
			},
			plugins: {
				openapi: {
					answers: {
						200: {
							'text/javascript': Joi.string().example('the bytes of the file'),
							'text/css': Joi.string().example('the bytes of the file'),
						},
						304: {},
					},
					errors: [503],
				},
			},
		},
		handler: async (request, h) => {
			const { file } = request.params
			const answer = added.file(file) ?? (await pages()).files.get(file)
			if (!answer) throw new Fault('not_found', 'the console has no such file; GET / shows the console')
			return (await answer(request, h)).header('cache-control', IMMUTABLE)
		},
	})
}
