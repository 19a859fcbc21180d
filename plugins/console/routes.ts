import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import { Fault } from '../../core/errors.ts'
import { pages } from './pages.ts'

/** A name changes with the content. */
const FOR_GOOD = 'public, max-age=31536000, immutable'

/** Public: the pages hold nothing of this gateway. What they show they read by the API, as their caller. */
export function routes(server: Server): void {
	server.route<{ Params: { file: string } }>({
		method: 'GET',
		path: '/console/{file}',
		options: {
			id: 'getConsoleFile',
			description: 'A part of the console, which GET / shows to browsers',
			tags: ['api', 'gateway'],
			auth: false,
			validate: {
				params: Joi.object({
					file: Joi.string().max(128).required().description('Name of the part.').example('app-2RK4ISHG.js'),
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
			const answer = (await pages()).files.get(request.params.file)
			if (!answer) throw new Fault('not_found', 'the console has no such part; GET / shows it')
			return (await answer(request, h)).header('cache-control', FOR_GOOD)
		},
	})
}
