// Tokens that open one object for a while, to each holder of the URL.
import { type errors, jwtVerify, SignJWT } from 'jose';
import { StorageError } from './storage-error.ts';

export interface UrlSigner {
  /** The path of a signed URL below /storage/v1; it opens the object for `seconds`. */
  sign(bucket: string, name: string, seconds: number): Promise<string>;
  /** Throws unless the token is a valid one for this object. */
  verify(bucket: string, name: string, token: string): Promise<void>;
}

const scope = 'download';

export function createUrlSigner(secret: string): UrlSigner {
  const key = new TextEncoder().encode(secret);
  return {
    async sign(bucket, name, seconds) {
      const url = `${bucket}/${name}`;
      const now = Math.floor(Date.now() / 1000);
      const token = await new SignJWT({ url, scope })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuedAt(now)
        .setExpirationTime(now + seconds)
        .sign(key);
      return `/object/sign/${url}?token=${token}`;
    },
    async verify(bucket, name, token) {
      const { payload } = await jwtVerify(token, key, { algorithms: ['HS256'] }).catch((error: errors.JOSEError) => {
        throw new StorageError(400, 'InvalidJWT', error.message);
      });
      if (payload.scope !== scope || payload.url !== `${bucket}/${name}`) {
        throw new StorageError(400, 'InvalidSignature', 'Invalid signature');
      }
    },
  };
}
