// The screens there are; those with a key stand in the navigation, and `g` and the key lead there.
import type { ComponentType } from 'preact';
import { Overview } from './overview.tsx';
import type { Route } from './route.ts';

interface Screen {
  title: string;
  key?: string;
  draw: ComponentType<Route>;
}

export const screens: Record<string, Screen> = {
  overview: { title: 'Overview', key: 'o', draw: Overview },
};
